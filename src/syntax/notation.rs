//! The two notations, and how a file or a text shows in which of them it is.

/// The two ways to write a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// YAML, in files that end in `.yaml` or `.yml`
    Yaml,
    /// The DSL, in files that end in `.trafo`
    Dsl,
}

impl Notation {
    /// The notation that a file name's extension indicates.
    pub fn from_path(path: &str) -> Option<Self> {
        // Without an extension, as for standard input, the text itself has to be looked at.
        let (_, extension) = path.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Some(Notation::Yaml),
            "trafo" => Some(Notation::Dsl),
            _ => None,
        }
    }

    /// The extension of its files, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Notation::Yaml => "yaml",
            Notation::Dsl => "trafo",
        }
    }

    /// The notation of a text without a file name: the DSL begins with `model` or `block`.
    pub fn guess(text: &str) -> Self {
        // Editors on Windows may begin a file with a byte order mark.
        let code = text.trim_start_matches('\u{feff}').lines().map(str::trim);
        let first = code.into_iter().find(|l| !l.is_empty() && !l.starts_with('#') && !l.starts_with("//"));
        // `model : x` is a key in YAML.
        let word = |l: &str, w: &str| l.strip_prefix(w).is_some_and(|r| !r.trim_start().starts_with(':'));
        match first {
            Some(line)
                if word(line, "model ")
                    || word(line, "model{")
                    || word(line, "block ")
                    || word(line, "part ") =>
            {
                Notation::Dsl
            }
            Some(_) | None => Notation::Yaml,
        }
    }
}
