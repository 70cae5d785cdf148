//! `Repair` and `Repairs`: the repairs by name, and sets of them.

use core::fmt;
use core::str::FromStr;

use crate::rule::Rule;

macro_rules! repairs {
    ($($(#[$doc:meta])* $id:ident $name:literal $rule:ident;)*) => {
        /// A repair of a common fault of real producers, with its name and its rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Repair {
            $($(#[$doc])* $id,)*
        }

        impl Repair {
            /// Every repair, in the order of the rules.
            pub const ALL: &'static [Repair] = &[$(Repair::$id),*];

            /// The name of the repair, such as `"reopen"`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Repair::$id => $name,)* }
            }

            /// The rule that the warnings of this repair cite.
            #[must_use]
            pub const fn rule(self) -> Rule {
                match self { $(Repair::$id => Rule::$rule,)* }
            }
        }
    };
}

repairs! {
    /// Events of a run that come after its RUN_FINISHED, against rule R4.
    ///
    /// RUN_FINISHED is held back until RUN_STARTED, RUN_ERROR, another RUN_FINISHED or the end of the
    /// stream. Of several the last is delivered, with the usage of all.
    ResultAfterFinish "result-after-finish" X1;
    /// CONTENT, ARGS or END for an item that was closed in this run, against rule S2.
    ///
    /// The item is opened again as it was, and closed before its result, before RUN_FINISHED or by
    /// its own END. An END alone is dropped.
    Reopen "reopen" X2;
    /// CONTENT for a text or reasoning message that was never opened in this run, against rule S2.
    ///
    /// The message is opened, and closed before RUN_FINISHED or by its own END.
    OpenUnopened "open-unopened" X3;
    /// Frames of server-sent events that hold no event, against rule T1a.
    ///
    /// They are skipped: `[DONE]`, `null`, empty data, and frames with a name of their own (`event: ping`)
    /// that are not events. Frames whose name speaks of an error are not skipped.
    IgnoreFrames "ignore-frames" X4;
    /// Items and steps that are open at RUN_FINISHED, against rule R3.
    ///
    /// They are closed before it. A subagent is not: its end would say that it succeeded.
    CloseAtFinish "close-at-finish" X5;
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Repair {
    type Err = UnknownRepair;

    fn from_str(name: &str) -> Result<Self, UnknownRepair> {
        let known = Repair::ALL.iter().copied().find(|repair| repair.name().eq_ignore_ascii_case(name));
        known.ok_or_else(|| UnknownRepair(name.to_owned()))
    }
}

/// A set of [`Repair`]s.
///
/// ```
/// use ag_ui_stream::machine::{Repair, Repairs};
///
/// let repairs: Repairs = "reopen,close-at-finish".parse()?;
/// assert_eq!(repairs, Repairs::from_iter([Repair::CloseAtFinish, Repair::Reopen]));
/// assert_eq!("all".parse(), Ok(Repairs::ALL));
/// assert_eq!(Repairs::default(), Repairs::NONE);
/// # Ok::<(), ag_ui_stream::machine::UnknownRepair>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Repairs(u8);

impl Repairs {
    /// No repair.
    pub const NONE: Self = Self(0);
    /// Every repair.
    pub const ALL: Self = Self((1 << Repair::ALL.len()) - 1);

    /// The same set with this repair.
    #[must_use]
    pub const fn with(self, repair: Repair) -> Self {
        Self(self.0 | 1 << repair as u8)
    }

    /// Whether this repair is in the set.
    #[must_use]
    pub const fn contains(self, repair: Repair) -> bool {
        self.0 & (1 << repair as u8) != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The repairs of the set, in the order of the rules.
    pub fn iter(self) -> impl Iterator<Item = Repair> {
        Repair::ALL.iter().copied().filter(move |repair| self.contains(*repair))
    }
}

impl FromIterator<Repair> for Repairs {
    fn from_iter<I: IntoIterator<Item = Repair>>(repairs: I) -> Self {
        repairs.into_iter().fold(Self::NONE, Self::with)
    }
}

impl From<Repair> for Repairs {
    fn from(repair: Repair) -> Self {
        Self::NONE.with(repair)
    }
}

impl fmt::Debug for Repairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Writes the names separated by commas, as [`FromStr`] reads them.
impl fmt::Display for Repairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, repair) in self.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            f.write_str(repair.name())?;
        }
        Ok(())
    }
}

/// Reads names separated by commas, in either case; `all` is every repair.
impl FromStr for Repairs {
    type Err = UnknownRepair;

    fn from_str(names: &str) -> Result<Self, UnknownRepair> {
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.into_iter().try_fold(Self::NONE, |repairs, name| {
            Ok(if name.eq_ignore_ascii_case("all") { Self::ALL } else { repairs.with(name.parse()?) })
        })
    }
}

/// The error for a name that no repair has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRepair(String);

impl fmt::Display for UnknownRepair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = crate::excerpt::excerpt(&self.0, 40);
        write!(f, "there is no repair {name:?}; there are {}", Repairs::ALL)
    }
}

impl core::error::Error for UnknownRepair {}
