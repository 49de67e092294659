//! The small data sets that come with trafoc, their bytes inside the program: `@isimler.txt` wherever a recipe
//! names a file of data.

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

/// All of them, by name.
pub const SHIPPED: &[Shipped] = shelf! {
    "digits.csv.gz" "isimler.txt" "numbers-en-fr-test.txt" "numbers-en-fr.txt" "numbers-test.csv" "numbers.csv"
    "opinions.csv" "people.json" "people.tsv" "reports.csv"
};

/// The data set of that name.
pub fn shipped(name: &str) -> Option<&'static Shipped> {
    SHIPPED.iter().find(|s| s.name == name)
}
