//! Short texts, made fast.

use smol_str::SmolStr;

/// The text as a [`SmolStr`].
///
/// What [`SmolStr::new`] makes of a short text goes through two buffers, and the processor waits
/// where it reads in one piece what it has just written in several. Of a length that the compiler
/// knows, it is a move or two.
#[inline]
pub(crate) fn short(text: &str) -> SmolStr {
    macro_rules! by_length {
        ($($len:literal)*) => {
            match text.len() {
                $($len => SmolStr::new_inline(of_length::<$len>(text)),)*
                _ => SmolStr::new(text),
            }
        };
    }
    by_length!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23)
}

/// The same text, whose length the compiler now knows.
#[inline(always)]
fn of_length<const N: usize>(text: &str) -> &str {
    match text.get(..N) {
        Some(text) if text.len() == N => text,
        _ => "",
    }
}
