//! Arrays as files: written value by value, read with every bound checked.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use super::manifest::{ArrayEntry, PartEntry};
use crate::diag::count::counted;
use crate::learn::data::examples::{NOTHING, Sequences};
use crate::learn::whole::{FileList, at};
use crate::{read, write};

/// The class of a position without one. [`NOTHING`], the largest `u32`, has no place in signed arrays.
pub const NO_CLASS: i32 = -1;

/// The type of an array's values.
pub trait Scalar: Copy {
    /// Its name, which is the ending of a file.
    const NAME: &'static str;
    /// The number of bytes of one value.
    const BYTES: usize;
    /// Writes the bytes, the lowest first.
    fn put(self, to: &mut dyn Write) -> io::Result<()>;
    /// Reads the bytes of one value.
    fn take(bytes: &[u8]) -> Self;
}

macro_rules! scalars {
    ($($ty:ty = $name:literal),*) => {$(
        impl Scalar for $ty {
            const NAME: &'static str = $name;
            const BYTES: usize = size_of::<$ty>();

            fn put(self, to: &mut dyn Write) -> io::Result<()> {
                // The same bytes on every machine, so that a folder can be copied to another.
                to.write_all(&self.to_le_bytes())
            }

            fn take(bytes: &[u8]) -> Self {
                <$ty>::from_le_bytes(bytes.try_into().unwrap_or_default())
            }
        }
    )*};
}

scalars! { i32 = "i32", i64 = "i64", f32 = "f32", u8 = "u8" }

/// An error of a file, with its path.
pub type Failed = (PathBuf, io::Error);

/// Writes the arrays of one part.
pub struct Writer<'f> {
    folder: &'f Path,
    part: &'static str,
    /// The arrays that have been written.
    pub arrays: IndexMap<String, ArrayEntry>,
}

/// The name of an array's file: `train.ids.i32`.
fn file_of(part: &str, name: &str, ty: &str) -> String {
    format!("{part}.{name}.{ty}")
}

impl<'f> Writer<'f> {
    /// A writer without arrays.
    pub fn new(folder: &'f Path, part: &'static str) -> Self {
        Self { folder, part, arrays: IndexMap::new() }
    }

    /// The names of the files that have been written.
    pub fn files(&self) -> impl Iterator<Item = String> {
        self.arrays.values().map(|array| array.file.clone())
    }

    /// Writes an array whose rows have this shape.
    pub fn array<T: Scalar>(
        &mut self,
        name: &str,
        row: &[u64],
        values: impl Iterator<Item = T>,
    ) -> Result<(), Failed> {
        let file = file_of(self.part, name, T::NAME);
        let path = self.folder.join(&file);
        let mut count = 0u64;
        let written = write::replace_own(&path, |to| {
            for value in values {
                count = count.saturating_add(1);
                value.put(to)?;
            }
            Ok(())
        });
        written.map_err(|e| (path, e))?;
        // Counted and not given by the caller, so that the shape is that of the file.
        let rows = count.checked_div(row.iter().product()).unwrap_or(0);
        let shape = std::iter::once(rows).chain(row.iter().copied()).collect();
        self.arrays.insert(name.to_owned(), ArrayEntry { file, ty: T::NAME.to_owned(), shape });
        Ok(())
    }

    /// Writes lists of ids as two arrays: all ids, and the offsets at which the lists begin.
    pub fn lists(&mut self, name: &str, lists: &Sequences) -> Result<(), Failed> {
        // A larger id is beyond every vocabulary, so reading refuses it.
        let id = |id: u32| if id == NOTHING { NO_CLASS } else { i32::try_from(id).unwrap_or(i32::MAX) };
        let each = || (0..lists.len()).map(|i| lists.get(i));
        self.array(name, &[], each().flatten().map(|i| id(*i)))?;
        self.offsets(name, each().map(<[u32]>::len))
    }

    /// Writes texts as two arrays: all bytes of UTF-8, and the offsets at which the texts begin.
    pub fn texts<'t>(
        &mut self,
        name: &str,
        texts: impl Iterator<Item = &'t str> + Clone,
    ) -> Result<(), Failed> {
        self.array(name, &[], texts.clone().flat_map(str::bytes))?;
        self.offsets(name, texts.map(str::len))
    }

    /// Writes the offsets at which lists of these lengths begin, and then the number of all values, so that
    /// list `i` is from offset `i` to offset `i + 1`.
    pub fn offsets(&mut self, name: &str, lengths: impl Iterator<Item = usize>) -> Result<(), Failed> {
        let ends = lengths.scan(0i64, |end, length| {
            *end = end.saturating_add(i64::try_from(length).unwrap_or(i64::MAX));
            Some(*end)
        });
        self.array(&format!("{name}.offsets"), &[], std::iter::once(0).chain(ends))
    }
}

/// Reads the arrays of one part. Its errors are messages in lower case without a full stop.
pub struct Reader<'f> {
    folder: &'f Path,
    part: &'static str,
    list: &'f FileList,
    /// What `data.json` says about the part.
    pub entry: &'f PartEntry,
    /// The number of arrays that have been read.
    read: usize,
}

impl<'f> Reader<'f> {
    /// A reader of the files that a folder lists.
    pub fn new(folder: &'f Path, part: &'static str, list: &'f FileList, entry: &'f PartEntry) -> Self {
        Self { folder, part, list, entry, read: 0 }
    }

    /// The number of examples.
    pub fn examples(&self) -> Result<usize, String> {
        usize::try_from(self.entry.examples).map_err(|_| format!("{}: too many examples", self.part))
    }

    /// An array whose rows have this shape; `rows` is their number if it is known.
    pub fn array<T: Scalar>(
        &mut self,
        name: &str,
        rows: Option<usize>,
        row: &[usize],
    ) -> Result<Vec<T>, String> {
        let file = file_of(self.part, name, T::NAME);
        let found = self.entry.arrays.get(name).ok_or_else(|| format!("data.json has no array of {file}"))?;
        // The name in `data.json` is only compared: as a path it could lead out of the folder.
        if found.file != file || found.ty != T::NAME || !self.list.names().any(|listed| listed == file) {
            return Err(format!("the array `{name}` of `{}` is not {file}", self.part));
        }
        let shape: Vec<u64> = row.iter().map(|size| *size as u64).collect();
        let (count, of_row) = match found.shape.split_first() {
            Some((count, of_row)) if of_row == shape && rows.is_none_or(|rows| rows as u64 == *count) => {
                (*count, of_row)
            }
            _ => return Err(format!("{file}: the shape {:?} is not that of its data", found.shape)),
        };
        let bytes = of_row.iter().try_fold(count, |n, size| n.checked_mul(*size));
        let bytes = bytes.and_then(|n| n.checked_mul(T::BYTES as u64));
        let path = self.folder.join(&file);
        let length = fs::metadata(&path).map_err(|e| at(&file, &e))?.len();
        // Before memory is taken: a shape may promise any number of values.
        if bytes != Some(length) {
            return Err(format!(
                "{file} has {}, but its shape {:?} takes another number of them",
                counted(length, "byte"),
                found.shape
            ));
        }
        // Value by value and not mapped into memory: mapping a file takes unsafe code, and another process
        // could change it while it is used.
        let mut from =
            io::BufReader::with_capacity(1 << 16, read::regular(&path).map_err(|e| at(&file, &e))?);
        let mut values = Vec::with_capacity(usize::try_from(length).unwrap_or(0) / T::BYTES);
        let mut bytes = vec![0; T::BYTES];
        for _ in 0..length / T::BYTES as u64 {
            from.read_exact(&mut bytes).map_err(|e| at(&file, &e))?;
            values.push(T::take(&bytes));
        }
        self.read = self.read.saturating_add(1);
        Ok(values)
    }

    /// The ends of lists, whose values are `total` together.
    pub fn ends(&mut self, name: &str, lists: Option<usize>, total: usize) -> Result<Vec<usize>, String> {
        let array = format!("{name}.offsets");
        let rows = lists.map(|lists| lists.saturating_add(1));
        let offsets: Vec<i64> = self.array(&array, rows, &[])?;
        let wrong =
            || format!("{}: the offsets do not rise from 0 to {total}", file_of(self.part, &array, "i64"));
        // A negative offset, which signed numbers can have, is refused here.
        let offsets: Option<Vec<usize>> = offsets.into_iter().map(|o| usize::try_from(o).ok()).collect();
        let offsets = offsets.ok_or_else(wrong)?;
        let rises = offsets.windows(2).all(|pair| matches!(pair, [a, b] if a <= b));
        if offsets.first() != Some(&0) || offsets.last() != Some(&total) || !rises {
            return Err(wrong());
        }
        // The first offset is 0 and needs no place in memory.
        Ok(offsets.into_iter().skip(1).collect())
    }

    /// Ids below `count`, which are called `what` in messages.
    pub fn ids(
        &mut self,
        name: &str,
        rows: Option<usize>,
        count: usize,
        what: &str,
        may_lack: bool,
    ) -> Result<Vec<u32>, String> {
        let ids: Vec<i32> = self.array(name, rows, &[])?;
        let check = |id: i32| match u32::try_from(id) {
            Ok(id) if (id as usize) < count => Ok(id),
            Err(_) if may_lack && id == NO_CLASS => Ok(NOTHING),
            _ => Err(format!("{}: {id} is not one of {count} {what}", file_of(self.part, name, "i32"))),
        };
        ids.into_iter().map(check).collect()
    }

    /// Lists of ids below `count`.
    pub fn lists(
        &mut self,
        name: &str,
        lists: Option<usize>,
        count: usize,
        what: &str,
        may_lack: bool,
    ) -> Result<Sequences, String> {
        let ids = self.ids(name, None, count, what, may_lack)?;
        let ends = self.ends(name, lists, ids.len())?;
        Ok(Sequences::of(ids, ends))
    }

    /// Texts; `count` is their number if it is known.
    pub fn texts(&mut self, name: &str, count: Option<usize>) -> Result<Vec<String>, String> {
        let bytes: Vec<u8> = self.array(name, None, &[])?;
        let ends = self.ends(name, count, bytes.len())?;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let texts = starts.zip(&ends).map(|(start, end)| {
            let text = bytes.get(start..*end).and_then(|text| std::str::from_utf8(text).ok());
            text.map(str::to_owned)
                .ok_or_else(|| format!("{}: a text is not UTF-8", file_of(self.part, name, "u8")))
        });
        texts.collect()
    }

    /// Checks that there are no arrays other than those that have been read.
    pub fn finish(&self) -> Result<(), String> {
        // An array that is listed and not read would be data that this version does not respect.
        match self.entry.arrays.len() == self.read {
            true => Ok(()),
            false => Err(format!("data.json has arrays of `{}` that do not belong to the task", self.part)),
        }
    }
}
