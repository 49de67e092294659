//! tmp
/// tmp
pub fn yaml(_: &super::tree::Node) -> String {
    String::new()
}
/// tmp
pub fn dsl(_: &super::tree::Node) -> String {
    String::new()
}
