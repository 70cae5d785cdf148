mod input;
mod text;
fn main() {}
