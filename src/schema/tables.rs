//! The two tables that the wire types are written in.

/// A closed JSON object: the struct, its wire form both ways, and its enforcement, from one list.
///
/// `const "key" "value"` is a member with one legal value; `tag "key" "value"` is the
/// discriminator of a union, checked by whoever chose the type. `required` and `optional` name a
/// field, its type and its key; `ident` is an optional id that has no type of its own; `nonnull` is
/// an optional field of any JSON value except null.
macro_rules! object {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(tag $tag_key:literal $tag_value:expr;)?
            $(const $const_key:literal $const_value:literal;)?
            $(required { $($(#[$rdoc:meta])* $rfield:ident: $rtype:ty = $rkey:literal,)* })?
            $(optional { $($(#[$odoc:meta])* $ofield:ident: $otype:ty = $okey:literal,)* })?
            $(ident { $($(#[$idoc:meta])* $ifield:ident = $ikey:literal,)* })?
            $(nonnull { $($(#[$ndoc:meta])* $nfield:ident = $nkey:literal,)* })?
            $(flatten $($base:ident)+;)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $($($(#[$rdoc])* pub $rfield: $rtype,)*)?
            $($($(#[$odoc])* pub $ofield: Option<$otype>,)*)?
            $($($(#[$idoc])* pub $ifield: Option<std::sync::Arc<str>>,)*)?
            $($($(#[$ndoc])* pub $nfield: Option<serde_json::Value>,)*)?
            $($(
                #[doc = object!(@doc $base)]
                pub $base: object!(@type $base),
            )+)?
        }

        impl $name {
            /// One with its required fields, the others absent.
            #[must_use]
            #[allow(clippy::new_without_default, reason = "a constructor in a table, not a default")]
            pub fn new($($($rfield: impl Into<$rtype>),*)?) -> Self {
                Self {
                    $($($rfield: $rfield.into(),)*)?
                    $($($ofield: None,)*)?
                    $($($ifield: None,)*)?
                    $($($nfield: None,)*)?
                    $($($base: Default::default(),)+)?
                }
            }

            #[allow(dead_code, reason = "not every table is read as part of another")]
            const KEYS: &'static [&'static str] = &[
                $($tag_key,)? $($const_key,)? $($($rkey,)*)? $($($okey,)*)? $($($ikey,)*)? $($($nkey,)*)?
            ];
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[allow(unused_imports)]
                use serde::ser::SerializeMap as _;
                #[allow(unused_mut)]
                let mut map = serializer.serialize_map(None)?;
                $(map.serialize_entry($tag_key, $tag_value)?;)?
                $(map.serialize_entry($const_key, $const_value)?;)?
                $($(map.serialize_entry($rkey, &self.$rfield)?;)*)?
                $($(if let Some(value) = &self.$ofield { map.serialize_entry($okey, value)?; })*)?
                $($(if let Some(value) = &self.$ifield { map.serialize_entry($ikey, value)?; })*)?
                $($(if let Some(value) = &self.$nfield { map.serialize_entry($nkey, value)?; })*)?
                $($(object!(@write $base self map);)+)?
                map.end()
            }
        }

        impl crate::schema::decode::Decode for $name {
            fn decode(node: &crate::json::node::Node<'_>, cx: &mut crate::schema::decode::Context) -> crate::schema::decode::Decoded<Self> {
                let object = cx.object(node)?;
                #[allow(unused_mut)]
                let mut faults = crate::schema::decode::Faults::default();
                $(let constant = cx.required::<crate::schema::decode::Constant>(object, $const_key, &mut faults);
                  crate::schema::decode::Constant::check(constant, cx, $const_key, $const_value, &mut faults);)?
                $($(let $rfield = cx.required::<$rtype>(object, $rkey, &mut faults);)*)?
                $($(let $ofield = cx.optional::<$otype>(object, $okey, &mut faults);)*)?
                $($(let $ifield = cx.optional::<crate::schema::decode::Ident>(object, $ikey, &mut faults).map(|id| id.0);)*)?
                $($(let $nfield = cx.optional::<crate::schema::decode::NonNull>(object, $nkey, &mut faults).map(|value| value.0);)*)?
                $($(let $base = object!(@read $base object cx faults);)+)?
                cx.strip(object, object!(@keys $name $($($base)+)?));
                faults.check()?;
                #[allow(unused_variables)]
                match ($($($rfield,)*)?) {
                    ($($(Some($rfield),)*)?) => Ok(Self {
                        $($($rfield,)*)? $($($ofield,)*)? $($($ifield,)*)? $($($nfield,)*)? $($($base,)+)?
                    }),
                    // `check` has returned by now wherever a required field is missing.
                    #[allow(unreachable_patterns)]
                    _ => Err(cx.malformed("an object with all required fields", node)),
                }
            }
        }
    };

    (@doc base) => { "What every event may carry." };
    (@doc subagent_run_id) => { "The subagent invocation that this belongs to; absent means the parent agent (rule O1)." };
    (@type base) => { BaseEvent };
    (@type subagent_run_id) => { Option<crate::id::SubagentRunId> };
    (@write base $self:ident $map:ident) => { $self.base.write(&mut $map)? };
    (@write subagent_run_id $self:ident $map:ident) => {
        if let Some(id) = &$self.subagent_run_id { $map.serialize_entry("subagentRunId", id)?; }
    };
    (@read base $object:ident $cx:ident $faults:ident) => { BaseEvent::read($object, $cx, &mut $faults) };
    (@read subagent_run_id $object:ident $cx:ident $faults:ident) => { $cx.optional($object, "subagentRunId", &mut $faults) };
    (@keys $name:ident) => { &[Self::KEYS] };
    (@keys $name:ident base) => { &[Self::KEYS, BaseEvent::KEYS] };
    (@keys $name:ident subagent_run_id) => { &[Self::KEYS, &["subagentRunId"]] };
    (@keys $name:ident subagent_run_id base) => { &[Self::KEYS, &["subagentRunId"], BaseEvent::KEYS] };
}

/// A closed set of strings. What is not in it is unknown (rule E4), never a catch-all variant.
macro_rules! closed_set {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every value, in the order of the schema.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The value as it is on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The value with this wire form, if there is one.
            #[must_use]
            pub fn from_wire(text: &str) -> Option<Self> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl crate::schema::decode::Decode for $name {
            fn decode(node: &crate::json::node::Node<'_>, cx: &mut crate::schema::decode::Context) -> crate::schema::decode::Decoded<Self> {
                match node {
                    crate::json::node::Node::String(text) => Self::from_wire(text.as_str())
                        .ok_or(crate::schema::decode::Reject::Unknown(crate::rule::Rule::E4)),
                    other => Err(cx.malformed("a string", other)),
                }
            }
        }
    };
}

/// A union told apart by one member (rule E3): a variant, its tag and its type in each line.
macro_rules! union {
    ($(#[$meta:meta])* pub enum $name:ident by $key:literal { $($(#[$doc:meta])* $variant:ident $tag:literal $member:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $name { $($(#[$doc])* $variant($member),)* }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $($name::$variant(member) => member.serialize(serializer),)* }
            }
        }

        impl crate::schema::decode::Decode for $name {
            fn decode(node: &crate::json::node::Node<'_>, cx: &mut crate::schema::decode::Context) -> crate::schema::decode::Decoded<Self> {
                let object = cx.object(node)?;
                match cx.tag(object, $key)? {
                    $($tag => <$member as crate::schema::decode::Decode>::decode(node, cx).map($name::$variant),)*
                    _ => Err(crate::schema::decode::Reject::Unknown(crate::rule::Rule::E3)),
                }
            }
        }

        $(
            impl From<$member> for $name {
                fn from(member: $member) -> Self {
                    $name::$variant(member)
                }
            }
        )*
    };
}
