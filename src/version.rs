//! Versions of the protocol, and how they compare (rule R11).

use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;

/// The version of AG-UI that this crate implements, MAJOR.MINOR.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Compares a declared version with another one, numerically by component; `None` if one of them is not
/// MAJOR.MINOR in decimal digits. Any number of digits will do: nothing overflows.
pub(crate) fn compare(declared: &str, ours: &str) -> Option<Ordering> {
    let (major, minor) = components(declared)?;
    let (our_major, our_minor) = components(ours)?;
    Some(numerically(major, our_major).then_with(|| numerically(minor, our_minor)))
}

fn components(version: &str) -> Option<(&str, &str)> {
    let (major, minor) = version.split_once('.')?;
    Some((digits(major)?, digits(minor)?))
}

/// The digits without leading zeros; `None` if there is any other character, or none.
fn digits(text: &str) -> Option<&str> {
    let decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    decimal.then(|| text.trim_start_matches('0'))
}

/// Compares two numbers written without leading zeros: the longer is the larger.
fn numerically(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The latest version of the protocol that a peer speaks. Before AG-UI 1.0 that was the version of the
/// project's npm packages. PyPI packages had numbers of their own: a server with `ag-ui-protocol` 0.1.9
/// or older speaks [`LAST_WITHOUT_PARTS`](ProtocolVersion::LAST_WITHOUT_PARTS).
///
/// # Examples
/// ```
/// use ag_ui_stream::input::ProtocolVersion;
///
/// let peer: ProtocolVersion = "0.0.57".parse()?;
/// assert!(peer < ProtocolVersion::CURRENT);
/// assert_eq!("1.0".parse(), Ok(ProtocolVersion::CURRENT));
/// # Ok::<(), ag_ui_stream::input::InvalidVersion>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolVersion {
    major: u64,
    minor: u64,
    patch: u64,
}

impl ProtocolVersion {
    /// The version of this crate, [`PROTOCOL_VERSION`].
    pub const CURRENT: Self = Self::new(1, 0, 0);
    /// The last one with messages of text only, and with runs without a parent.
    pub const LAST_WITHOUT_PARTS: Self = Self::new(0, 0, 39);
    /// The last one without subagents.
    pub const LAST_WITHOUT_SUBAGENTS: Self = Self::new(0, 0, 57);

    /// MAJOR.MINOR.PATCH.
    #[must_use]
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self { major, minor, patch }
    }
}

impl Default for ProtocolVersion {
    /// [`CURRENT`](ProtocolVersion::CURRENT).
    fn default() -> Self {
        Self::CURRENT
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for ProtocolVersion {
    type Err = InvalidVersion;

    /// MAJOR.MINOR, or MAJOR.MINOR.PATCH, in decimal digits.
    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let number = |part: &str| digits(part).and(part.parse().ok());
        let mut parts = text.split('.').map(number);
        match (parts.next().flatten(), parts.next().flatten(), parts.next(), parts.next()) {
            (Some(major), Some(minor), None, None) => Ok(Self::new(major, minor, 0)),
            (Some(major), Some(minor), Some(Some(patch)), None) => Ok(Self::new(major, minor, patch)),
            _ => Err(InvalidVersion),
        }
    }
}

/// An invalid version of the protocol: neither MAJOR.MINOR nor MAJOR.MINOR.PATCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidVersion;

impl fmt::Display for InvalidVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a version MAJOR.MINOR or MAJOR.MINOR.PATCH")
    }
}

impl core::error::Error for InvalidVersion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r11_components_compare_as_numbers() {
        let against = |declared| compare(declared, "1.10");
        for older in ["1.9", "0.99", "0.0", "1.0", "01.009"] {
            assert_eq!(against(older), Some(Ordering::Less), "{older}");
        }
        for equal in ["1.10", "001.10", "1.0010"] {
            assert_eq!(against(equal), Some(Ordering::Equal), "{equal}");
        }
        for newer in ["1.11", "1.100", "2.0", "10.0", "1.99999999999999999999999999", "18446744073709551617.0"] {
            assert_eq!(against(newer), Some(Ordering::Greater), "{newer}");
        }
    }

    #[test]
    fn r11_what_is_not_two_numbers_cannot_be_interpreted() {
        for strange in [
            "", "1", "1.", ".1", ".", "1.0.0", "1.0-rc1", "v1.0", "draft", "+1.0", "1.-1", " 1.0", "1.0 ", "١.٠", "1,0",
        ] {
            assert_eq!(compare(strange, PROTOCOL_VERSION), None, "{strange:?}");
        }
    }
}
