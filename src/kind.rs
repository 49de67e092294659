//! What a file is by its first bytes, for messages about one that is in the wrong place or must be converted.

use crate::read::limit;

/// A kind of file that is no text in UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Tensors, as trafoc reads them.
    Safetensors,
    /// Objects of Python, which may run code when they are opened.
    Pickle,
    /// Tensors of llama.cpp.
    Gguf,
    /// Tensors or tables.
    Hdf5,
    /// A tokenizer of the library SentencePiece.
    SentencePiece,
    /// A picture, or a document with some.
    Picture(&'static str),
    /// Several files in one; PyTorch puts its pickles into one.
    Zip,
    /// A table of rows, or an array.
    Table(&'static str),
    /// A file that has to be unpacked.
    Packed(&'static str),
    /// A text compressed with gzip.
    Gzip,
    /// A text in another encoding.
    Utf16,
}

/// Where a few bytes are, and the kind of file that has them there.
const MAGIC: &[(usize, &[u8], Kind)] = &[
    (0, b"PK\x03\x04", Kind::Zip),
    (0, b"\x89HDF", Kind::Hdf5),
    (0, b"\x89PNG\r\n", Kind::Picture("a PNG image")),
    (0, b"\xff\xd8\xff", Kind::Picture("a JPEG image")),
    (0, b"GIF8", Kind::Picture("a GIF image")),
    (8, b"WEBP", Kind::Picture("a WebP image")),
    (0, b"%PDF-", Kind::Picture("a PDF document")),
    (0, b"PAR1\x15", Kind::Table("a Parquet file")),
    (0, b"ARROW1\0", Kind::Table("an Arrow file")),
    (0, b"SQLite format 3\0", Kind::Table("a database of SQLite")),
    (0, b"\x93NUMPY", Kind::Table("an array of NumPy")),
    (0, b"\x1f\x8b", Kind::Gzip),
    (0, b"\xfd7zXZ\0", Kind::Packed("compressed with xz")),
    // A digit and the first digits of π follow.
    (4, b"\x31\x41\x59\x26\x53\x59", Kind::Packed("compressed with bzip2")),
    (0, b"\x28\xb5\x2f\xfd", Kind::Packed("compressed with Zstandard")),
    (0, b"7z\xbc\xaf\x27\x1c", Kind::Packed("a 7z archive")),
    (257, b"ustar", Kind::Packed("a tar archive")),
    (0, b"\xff\xfe", Kind::Utf16),
    (0, b"\xfe\xff", Kind::Utf16),
];

impl Kind {
    /// The kind of a file that begins with these bytes, if it is known and no text in UTF-8.
    pub fn of(begin: &[u8]) -> Option<Self> {
        match begin {
            // From protocol 2 on, a pickle begins with an opcode and the number of its protocol.
            [0x80, 2..=5, ..] => return Some(Self::Pickle),
            // The number of its version in four bytes.
            [b'G', b'G', b'U', b'F', _, 0, 0, 0, ..] => return Some(Self::Gguf),
            [b'B', b'Z', b'h', ..] => {}
            // The first piece with its text, after which its score comes.
            [b'\n', _, b'\n', length, rest @ ..] if rest.get(usize::from(*length)) == Some(&0x15) => {
                return Some(Self::SentencePiece);
            }
            [a, b, c, d, e, f, g, h, b'{', ..] => {
                let header = u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
                if (2..=limit::HEADER).contains(&header) {
                    return Some(Self::Safetensors);
                }
            }
            _ => {}
        }
        let is_there = |at: usize, bytes: &[u8]| begin.get(at..).is_some_and(|rest| rest.starts_with(bytes));
        let is_bzip = begin.starts_with(b"BZh");
        let mut known = MAGIC.iter().filter(|(at, bytes, _)| is_there(*at, bytes));
        known.find(|(at, ..)| *at != 4 || is_bzip).map(|(.., kind)| *kind)
    }

    /// What it is, after "it is".
    pub fn name(self) -> &'static str {
        match self {
            Self::Safetensors => "a safetensors file",
            Self::Pickle => "a Python pickle",
            Self::Gguf => "a GGUF file",
            Self::Hdf5 => "an HDF5 file",
            Self::SentencePiece => "a tokenizer of SentencePiece",
            Self::Zip => "a zip archive",
            Self::Gzip => "compressed with gzip",
            Self::Utf16 => "in UTF-16",
            Self::Picture(name) | Self::Table(name) | Self::Packed(name) => name,
        }
    }
}
