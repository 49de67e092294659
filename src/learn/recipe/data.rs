//! The recipe's `data`: the files, their format, and how they are divided into training, validation and
//! test data.

use super::value::Locations;
use crate::diag::{Code, Diagnostic};
use crate::field::record::{choice, record, slot};
use crate::field::{Context, Count, Positive, Share, Size};

record! {
    /// Every line is an example.
    pub struct Lines as "lines" {}
}
record! {
    /// The files are one text, which is cut into pieces as long as the context. Every line ends with `\n`: also
    /// one that ends with `\r\n`, and the last one of a file.
    pub struct Text as "text" {}
}
record! {
    /// Every line is a source, a tab and a target.
    pub struct Pairs as "pairs" {}
}
record! {
    /// Two files with corresponding lines: sources and targets.
    pub struct Parallel as "parallel" {}
}

choice! {
    /// What separates the columns of a table.
    pub enum Separator {
        /// A comma; a field may be enclosed in double quotes
        "comma" => Comma,
        /// A tab; quotes are ordinary characters
        "tab" => Tab,
        /// None: every line is a JSON object whose keys are the columns
        "json" => Json,
    }
}

record! {
    /// A table: csv, tsv, or one JSON object per line. A column is named as in the header, or by its number
    /// counted from 1.
    pub struct Table as "table" {
        /// What separates the columns; by default, that follows from the file's extension.
        separator: Option<Separator> = absent;
        /// Lines before the first example; the first of them names the columns. JSON has no header.
        header: Count = value(Count(1));
        /// The column of the text that is read or classified.
        text: Option<String> = absent;
        /// The column of a second text, which follows the first.
        second: Option<String> = absent;
        /// The column of the class; with `multi_label` it holds several, separated by `|` or as a list.
        label: Option<String> = absent;
        /// The column of the text that is translated.
        source: Option<String> = absent;
        /// The column of the translation.
        target: Option<String> = absent;
        /// The column of the translation's language.
        language: Option<String> = absent;
    }
}
record! {
    /// Questions about texts in the JSON format of SQuAD (Rajpurkar et al. 2016).
    pub struct Squad as "squad" {}
}
record! {
    /// A word, a tab and its class on each line; an empty line ends a sentence.
    pub struct Tagged as "tagged" {}
}
record! {
    /// A folder for each class, with its png and jpeg files.
    pub struct Images as "images" {
        /// Whether images of other sizes are resized to the size the model takes; otherwise they are
        /// refused.
        resize: bool = value(false);
    }
}

choice! {
    /// Whether the class is in the first or the last column.
    pub enum Side {
        /// The first column
        "first" => First,
        /// The last column
        "last" => Last,
    }
}

record! {
    /// A csv file without a header: each line holds the pixels of a grey image, row by row, and its class.
    pub struct Pixels as "pixels" {
        /// The value of white; pixels are divided by it.
        white: Positive = value(Positive(255.0));
        /// The column that holds the class.
        label: Side = value(Side::Last);
    }
}
record! {
    /// Two files in the IDX format of MNIST: images and their classes.
    pub struct Idx as "idx" {}
}

slot! {
    /// The format of the files.
    pub enum Format as "format" {
        /// Every line is an example.
        "lines" => Lines(Lines),
        /// One long text, which is cut into pieces as long as the context. Lines end with `\n`, including the
        /// last line of a file and lines that end with `\r\n`.
        "text" => Text(Text),
        /// A source, a tab and a target on each line.
        "pairs" => Pairs(Pairs),
        /// Two files with corresponding lines: `train: [SOURCES, TARGETS]`.
        "parallel" => Parallel(Parallel),
        /// Named columns: csv, tsv or JSON lines.
        "table" => Table(Table),
        /// Questions about texts, in the JSON format of SQuAD.
        "squad" => Squad(Squad),
        /// A word, a tab and its class on each line; an empty line ends a sentence.
        "tagged" => Tagged(Tagged),
        /// A folder for each class, with its png and jpeg files; `train` is the folder that contains them.
        "images" => Images(Images),
        /// A csv file without a header: each line holds the pixels of a grey image, row by row, and its
        /// class.
        "pixels" => Pixels(Pixels),
        /// Images and classes in MNIST's format: `train: [IMAGES, CLASSES]`.
        "idx" => Idx(Idx),
    }
}

impl Format {
    /// How many files belong together, with a description of them; `None` if any number is possible.
    pub fn files(&self) -> Option<(usize, &'static str)> {
        match self {
            Self::Parallel(_) => Some((2, "a file of sources and a file of targets")),
            Self::Idx(_) => Some((2, "a file of images and a file of classes")),
            Self::Lines(_)
            | Self::Text(_)
            | Self::Pairs(_)
            | Self::Table(_)
            | Self::Squad(_)
            | Self::Tagged(_)
            | Self::Images(_)
            | Self::Pixels(_) => None,
        }
    }

    /// Whether the files contain images.
    pub fn is_image(&self) -> bool {
        match self {
            Self::Images(_) | Self::Pixels(_) | Self::Idx(_) => true,
            Self::Lines(_)
            | Self::Text(_)
            | Self::Pairs(_)
            | Self::Parallel(_)
            | Self::Table(_)
            | Self::Squad(_)
            | Self::Tagged(_) => false,
        }
    }
}

record! {
    /// Shares of the training data that are held out; the seed selects the examples.
    pub struct HeldOut as "split" {
        /// The share for validation, which decides which checkpoint is the best.
        validation: Share = value(Share(0.0));
        /// The share for the final test.
        test: Share = value(Share(0.0));
    }
}

choice! {
    /// What happens to an example that is too long.
    pub enum TooLong {
        /// Training is refused, with the place of the first such example
        "refuse" => Refuse,
        /// Its end is cut off; with two texts, the longer one is cut first
        "cut" => Cut,
        /// It is left out
        "skip" => Skip,
    }
}

record! {
    /// The data a model is trained on. Files that end in `.gz` are decompressed as they are read. Paths are
    /// relative to the recipe's folder.
    pub struct Data as "data" {
        /// The format of the files.
        format: Format = required;
        /// The training data: a path, or a list of paths.
        train: Locations = required;
        /// The validation data, which decides which checkpoint is the best.
        validation: Option<Locations> = absent;
        /// The data for the final test.
        test: Option<Locations> = absent;
        /// Shares of `train` that are held out for validation and test.
        split: Option<HeldOut> = absent;
        /// How many examples of each part are read, from its start; by default all.
        limit: Option<Size> = absent;
        /// The largest number of tokens in an example, including special tokens; by default the spec's
        /// `context`.
        longest: Option<Size> = absent;
        /// What happens to a longer example.
        too_long: TooLong = value(TooLong::Refuse);
    } check Self::check;
}

impl Data {
    /// Reports a wrong number of files, a part that is given twice, and shares that leave nothing.
    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        let mut ok = Some(());
        if let Some((count, what)) = self.format.files() {
            let all = [("train", Some(&self.train)), ("validation", self.validation.as_ref())];
            let all = all.into_iter().chain([("test", self.test.as_ref())]);
            for (key, paths) in all.filter_map(|(key, paths)| paths.map(|p| (key, p))) {
                // With more files nothing would say which of them belong together.
                if paths.0.len() != count {
                    let found = paths.0.len();
                    let message = format!(
                        "the format `{}` needs {what}, and the number of paths here is \
                        {found}",
                        self.format.part()
                    );
                    let place = self.places.of(key);
                    cx.report(
                        Diagnostic::error(Code::LengthMismatch, place, message)
                            .help("write a list of two paths: `[first, second]`"),
                    );
                    ok = None;
                }
            }
        }
        let Some(split) = &self.split else { return ok };
        // Each part by itself: validation may be a file while the test data is a share of the training data.
        let shares = [("validation", *split.validation, &self.validation), ("test", *split.test, &self.test)];
        for (key, share, paths) in shares {
            if share > 0.0 && paths.is_some() {
                let message = format!("`{key}` is given both as a file and as a share of `train`");
                cx.report(
                    Diagnostic::error(Code::KeysExclude, split.places.of(key), message)
                        .label(self.places.of(key), "the file")
                        .help("keep one of them"),
                );
                ok = None;
            }
        }
        let sum = *split.validation + *split.test;
        let fault = match sum {
            // What was to be held out may have another name, which has been reported.
            0.0 if cx.sink().has_error_in(split.places.whole()) => None,
            0.0 => Some("the split holds out nothing".to_owned()),
            sum if sum >= 1.0 => Some(format!(
                "the split holds out {sum} of the data, which leaves \
                nothing to train on"
            )),
            _ => None,
        };
        if let Some(message) = fault {
            // The only share that is given may be in a setting and not in the recipe's own `split`.
            let given: Vec<&str> =
                ["validation", "test"].into_iter().filter(|key| split.places.has(key)).collect();
            let place = match given.as_slice() {
                [key] => split.places.of(key),
                _ => self.places.of("split"),
            };
            let diagnostic = Diagnostic::error(Code::OutOfRange, place, message);
            cx.report(diagnostic.help("write `split: {validation: 0.1}`, or remove it"));
            ok = None;
        }
        ok
    }
}
