//! The small data sets that come with trafoc as part of the program. A recipe can name one, such as
//! `@isimler.txt`, in place of a file.

/// A data set that comes with trafoc.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its name, without the `@`.
    pub name: &'static str,
    /// The bytes of its file.
    pub bytes: &'static [u8],
}

macro_rules! shelf {
    ($($name:literal)*) => {
        &[$(Shipped { name: $name, bytes: include_bytes!(concat!("../../../data/", $name)) }),*]
    };
}

/// Every shipped data set, in the order of their names.
pub const SHIPPED: &[Shipped] = shelf! {
    "digits.csv.gz" "isimler.txt" "numbers-en-fr-test.txt" "numbers-en-fr.txt" "numbers-test.csv" "numbers.csv"
    "opinions.csv" "people.json" "people.tsv" "reports.csv"
};

/// The data set of that name.
pub fn shipped(name: &str) -> Option<&'static Shipped> {
    SHIPPED.iter().find(|s| s.name == name)
}
