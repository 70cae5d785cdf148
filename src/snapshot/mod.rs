//! The conversation as it stands.

mod list;
mod text;

pub use list::List;
pub use text::Text;
