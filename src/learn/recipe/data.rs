//! What is learnt from: files, what they hold, and how they are divided.

use super::value::Locations;
use crate::diag::{Code, Diagnostic};
use crate::field::record::{choice, record, slot};
use crate::field::{Context, Count, Positive, Probability, Size};

record! {
    /// Every line is an example.
    pub struct Lines as "lines" {}
}
record! {
    /// The files are one text, cut into pieces as long as the context.
    pub struct Text as "text" {}
}
record! {
    /// Every line is a source, a tab and a target.
    pub struct Pairs as "pairs" {}
}
record! {
    /// Two files, whose lines belong together: sources and targets.
    pub struct Parallel as "parallel" {}
}

choice! {
    /// What stands between the columns of a table.
    pub enum Separator {
        /// A comma; a field may stand in double quotes
        "comma" => Comma,
        /// A tab, and quotes are ordinary characters
        "tab" => Tab,
        /// Nothing: every line is a JSON object, whose keys are the columns
        "json" => Json,
    }
}

record! {
    /// A table: csv, tsv, or an object of JSON a line. Columns are named by the header, or by their
    /// number from 1.
    pub struct Table as "table" {
        /// What stands between the columns; by default what the file's name says.
        separator: Option<Separator> = absent;
        /// Lines before the first example; the first of them names the columns. JSON has none.
        header: Count = value(Count(1));
        /// The text that is read, or classified.
        text: Option<String> = absent;
        /// A second text, behind the first.
        second: Option<String> = absent;
        /// The class; with `multi_label` several, between bars or in a list.
        label: Option<String> = absent;
        /// What is translated.
        source: Option<String> = absent;
        /// Its translation.
        target: Option<String> = absent;
        /// The language of the translation.
        language: Option<String> = absent;
    }
}
record! {
    /// Questions about texts in the JSON of SQuAD (Rajpurkar et al. 2016).
    pub struct Squad as "squad" {}
}
record! {
    /// A word, a tab and its class a line; an empty line ends a sentence.
    pub struct Tagged as "tagged" {}
}
record! {
    /// A folder of png and jpeg files for every class.
    pub struct Images as "images" {
        /// Whether an image of another size is brought to the model's.
        resize: bool = value(false);
    }
}

choice! {
    /// The first or the last column.
    pub enum Side {
        /// The first
        "first" => First,
        /// The last
        "last" => Last,
    }
}

record! {
    /// A csv file without header: every line the pixels of a grey image, row by row, and its class.
    pub struct Pixels as "pixels" {
        /// The value of white; pixels are divided by it.
        white: Positive = value(Positive(255.0));
        /// In which column the class stands.
        label: Side = value(Side::Last);
    }
}
record! {
    /// Two files in the IDX format of MNIST: images, then their classes.
    pub struct Idx as "idx" {}
}

slot! {
    /// What the files hold.
    pub enum Format as "format" {
        /// Every line is an example.
        "lines" => Lines(Lines),
        /// One long text, cut into pieces as long as the context.
        "text" => Text(Text),
        /// A source, a tab and a target a line.
        "pairs" => Pairs(Pairs),
        /// Two files line by line: `train: [SOURCES, TARGETS]`.
        "parallel" => Parallel(Parallel),
        /// Named columns: csv, tsv or JSON lines.
        "table" => Table(Table),
        /// Questions about texts, in the JSON of SQuAD.
        "squad" => Squad(Squad),
        /// A word, a tab and its class a line; an empty line ends a sentence.
        "tagged" => Tagged(Tagged),
        /// A folder of png and jpeg files for every class; `train` is the folder that holds these.
        "images" => Images(Images),
        /// Pixels of a grey image, row by row, and its class a line, in a csv file without header.
        "pixels" => Pixels(Pixels),
        /// Images and classes as MNIST has them: `train: [IMAGES, CLASSES]`.
        "idx" => Idx(Idx),
    }
}

impl Format {
    /// How many files belong together; any number where it does not matter.
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

    /// Whether it holds images.
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
    /// Shares of the training files that are held back, chosen by the seed.
    pub struct Held as "split" {
        /// To choose by.
        validation: Probability = value(Probability(0.0));
        /// To the end.
        test: Probability = value(Probability(0.0));
    }
}

choice! {
    /// What becomes of an example that is too long.
    pub enum TooLong {
        /// Training is refused, with the place of the first such example
        "refuse" => Refuse,
        /// Its end is cut off
        "cut" => Cut,
        /// It is left out
        "skip" => Skip,
    }
}

record! {
    /// What is learnt from. Files that end in `.gz` are unpacked as they are read. A path is seen from
    /// the recipe's folder.
    pub struct Data as "data" {
        /// What the files hold.
        format: Format = required;
        /// What is learnt from: a path, or a list of paths.
        train: Locations = required;
        /// What is held back to choose by.
        validation: Option<Locations> = absent;
        /// What is held back to the end.
        test: Option<Locations> = absent;
        /// Shares of `train` that are held back.
        split: Option<Held> = absent;
        /// Examples of every part that are read, the first ones; all where absent.
        limit: Option<Size> = absent;
        /// The most tokens of an example, marks of start and end among them; the spec's `context` where
        /// absent.
        longest: Option<Size> = absent;
        /// What becomes of a longer one.
        too_long: TooLong = value(TooLong::Refuse);
    } check Self::check
}

impl Data {
    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        let mut ok = Some(());
        if let Some((count, what)) = self.format.files() {
            let all = [("train", Some(&self.train)), ("validation", self.validation.as_ref())];
            let all = all.into_iter().chain([("test", self.test.as_ref())]);
            for (key, paths) in all.filter_map(|(key, paths)| paths.map(|p| (key, p))) {
                if paths.0.len() != count {
                    let found = paths.0.len();
                    let message = format!("`{}` needs {what}, and there is {found}", self.format.part());
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
        let shares = [("validation", *split.validation, &self.validation), ("test", *split.test, &self.test)];
        for (key, share, paths) in shares {
            if share > 0.0 && paths.is_some() {
                let message = format!("`{key}` is both a file and a share of `train`");
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
            0.0 => Some("nothing is held back".to_owned()),
            sum if sum >= 1.0 => Some(format!("{sum} of the data is held back, and nothing is left")),
            _ => None,
        };
        if let Some(message) = fault {
            let diagnostic = Diagnostic::error(Code::OutOfRange, self.places.of("split"), message);
            cx.report(diagnostic.help("write `split: {validation: 0.1}`, or take it away"));
            ok = None;
        }
        ok
    }
}
