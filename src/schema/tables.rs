//! The macros whose tables describe the wire types: `object!`, `closed_set!` and `union!`.

/// Implements `Deserialize` for a type of the tables, by way of enforcement.
macro_rules! deserialize {
    ($($name:ty),*) => {$(
        /// As enforcement reads it (rules E2 to E6): unknown parts are removed, and a malformed one is an
        /// error that names the rule and the place. Serde cannot return warnings, so they are only
        /// logged.
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::schema::read::deserialize(deserializer, stringify!($name))
            }
        }
    )*};
}

/// A closed JSON object: its list of members generates the struct, its JSON, both readers (from a tree
/// and straight from text), the checks of a typed value, and its `Debug`.
///
/// `const "key" "value"` is a member with one legal value; `tag "key" "value"` is the
/// discriminator of a union, checked where the type is chosen. `required` and `optional` name a
/// field, its type and its key; `ident` is an optional id without a type of its own; `nonnull` is
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
        #[derive(Clone, PartialEq)]
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
            /// A value with these required fields; the others are absent.
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

            /// The subagent invocation that it belongs to, or that it is about.
            #[allow(dead_code, reason = "not every table has one")]
            #[inline]
            pub(crate) fn owner(&self) -> Option<&crate::id::SubagentRunId> {
                None $($(.or(object!(@owner required $rfield self)))*)? $($(.or(object!(@owner $base $base self)))+)?
            }

            /// Its tag, where it may have one.
            #[allow(dead_code, reason = "only events are tagged")]
            pub(crate) fn tag_mut(&mut self) -> Option<&mut Option<crate::id::SubagentRunId>> {
                None $($(.or(object!(@tag_mut $base $base self)))+)?
            }
        }

        /// Absent fields are left out.
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                #[allow(unused_mut)]
                let mut out = f.debug_struct(stringify!($name));
                $($(out.field(stringify!($rfield), &self.$rfield);)*)?
                $($(if let Some(value) = &self.$ofield { out.field(stringify!($ofield), value); })*)?
                $($(if let Some(value) = &self.$ifield { out.field(stringify!($ifield), value); })*)?
                $($(if let Some(value) = &self.$nfield { out.field(stringify!($nfield), value); })*)?
                $($(object!(@debug $base self out);)+)?
                out.finish()
            }
        }

        deserialize!($name);

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[allow(unused_imports)]
                use serde::ser::SerializeMap as _;
                #[allow(unused_mut)]
                let mut map = serializer.serialize_map(None)?;
                $(map.serialize_entry(&crate::json::Name($tag_key), &crate::json::Name($tag_value))?;)?
                $(map.serialize_entry(&crate::json::Name($const_key), &crate::json::Name($const_value))?;)?
                $($(map.serialize_entry(&crate::json::Name($rkey), &self.$rfield)?;)*)?
                $($(if let Some(value) = &self.$ofield { map.serialize_entry(&crate::json::Name($okey), value)?; })*)?
                $($(if let Some(value) = &self.$ifield { map.serialize_entry(&crate::json::Name($ikey), value)?; })*)?
                $($(if let Some(value) = &self.$nfield { map.serialize_entry(&crate::json::Name($nkey), value)?; })*)?
                $($(object!(@write $base self map);)+)?
                map.end()
            }
        }

        impl crate::schema::decode::Decode for $name {
            fn decode(node: &crate::json::node::Node<'_>, cx: &mut crate::schema::decode::Context) -> crate::schema::decode::Decoded<Self> {
                let object = cx.object(node)?;
                #[allow(unused_mut)]
                let mut faults = crate::schema::decode::Faults::default();
                $(cx.constant(object, $const_key, $const_value, &mut faults);)?
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
                    // Unreachable: `check` has returned if a required field is missing.
                    #[allow(unreachable_patterns)]
                    _ => Err(cx.malformed("an object with all required fields", node)),
                }
            }

            #[allow(unused_variables, unused_mut, unused_assignments, reason = "not every table has every kind of member")]
            fn read(reader: &mut crate::schema::text::Reader<'_, '_>) -> Option<Self> {
                let mut members = reader.members()?;
                let mut constant = false;
                $($(let mut $rfield: Option<$rtype> = None;)*)?
                $($(let mut $ofield: Option<$otype> = None;)*)?
                $($(let mut $ifield: Option<crate::schema::decode::Ident> = None;)*)?
                $($(let mut $nfield: Option<crate::schema::decode::NonNull> = None;)*)?
                $($(let mut $base = <object!(@type $base)>::default();)+)?
                $($(if reader.take_key(&members, concat!(",\"", $rkey, "\":")) { reader.once(&mut $rfield)?; })*)?
                while reader.more(&mut members)? {
                    match reader.key()? {
                        $($($rkey => reader.once(&mut $rfield)?,)*)?
                        $($($okey => reader.once(&mut $ofield)?,)*)?
                        $($($ikey => reader.once(&mut $ifield)?,)*)?
                        $($($nkey => reader.once(&mut $nfield)?,)*)?
                        $($const_key => reader.constant($const_value, &mut constant)?,)?
                        $($tag_key => reader.constant($tag_value, &mut members.tagged)?,)?
                        $($(key @ object!(@known $base) => object!(@take $base $base key reader),)+)?
                        _ => return None,
                    }
                }
                $(if !members.tagged { let _: &str = $tag_key; return None; })?
                $(if !constant { let _: &str = $const_key; return None; })?
                Some(Self {
                    $($($rfield: $rfield?,)*)?
                    $($($ofield,)*)?
                    $($($ifield: $ifield.map(|id| id.0),)*)?
                    $($($nfield: $nfield.map(|value| value.0),)*)?
                    $($($base,)+)?
                })
            }

            #[inline]
            #[allow(unused_variables, reason = "not every table has members to check")]
            fn check(&self, depth: usize, flaws: &mut crate::schema::check::Flaws) {
                let Some(depth) = flaws.enter(depth) else { return };
                $($(flaws.within($rkey, |flaws| crate::schema::decode::Decode::check(&self.$rfield, depth, flaws));)*)?
                $($(if let Some(value) = &self.$ofield { flaws.within($okey, |flaws| crate::schema::decode::Decode::check(value, depth, flaws)); })*)?
                $($(if let Some(value) = &self.$nfield { flaws.within($nkey, |flaws| flaws.not_null(value, depth)); })*)?
                $($(object!(@check $base self depth flaws);)+)?
            }
        }
    };

    (@doc base) => { "The fields that every event may carry." };
    (@doc subagent_run_id) => { "The subagent invocation that this belongs to; absent means the parent agent (rule O1)." };
    (@type base) => { BaseEvent };
    (@type subagent_run_id) => { Option<crate::id::SubagentRunId> };
    (@write base $self:ident $map:ident) => { $self.base.write(&mut $map)? };
    (@write subagent_run_id $self:ident $map:ident) => {
        if let Some(id) = &$self.subagent_run_id { $map.serialize_entry(&crate::json::Name("subagentRunId"), id)?; }
    };
    (@owner required subagent_run_id $self:ident) => { Some(&$self.subagent_run_id) };
    (@owner subagent_run_id subagent_run_id $self:ident) => { $self.subagent_run_id.as_ref() };
    (@owner $kind:ident $field:ident $self:ident) => { None };
    (@tag_mut subagent_run_id subagent_run_id $self:ident) => { Some(&mut $self.subagent_run_id) };
    (@tag_mut $kind:ident $field:ident $self:ident) => { None };
    (@debug base $self:ident $out:ident) => { $self.base.debug(&mut $out); };
    (@debug subagent_run_id $self:ident $out:ident) => {
        if let Some(id) = &$self.subagent_run_id { $out.field("subagent_run_id", id); }
    };
    (@known base) => { ("timestamp" | "rawEvent" | "metadata") };
    (@known subagent_run_id) => { "subagentRunId" };
    (@take base $base:ident $key:ident $reader:ident) => { $base.take($key, $reader)? };
    (@take subagent_run_id $id:ident $key:ident $reader:ident) => {{
        let _: &str = $key;
        $reader.once(&mut $id)?
    }};
    (@check base $self:ident $depth:ident $flaws:ident) => { $self.base.check($depth, $flaws); };
    (@check subagent_run_id $self:ident $depth:ident $flaws:ident) => {
        if let Some(id) = &$self.subagent_run_id { $flaws.id(id.as_str()); }
    };
    (@read base $object:ident $cx:ident $faults:ident) => { BaseEvent::read($object, $cx, &mut $faults) };
    (@read subagent_run_id $object:ident $cx:ident $faults:ident) => { $cx.optional($object, "subagentRunId", &mut $faults) };
    (@keys $name:ident) => { &[Self::KEYS] };
    (@keys $name:ident base) => { &[Self::KEYS, BaseEvent::KEYS] };
    (@keys $name:ident subagent_run_id) => { &[Self::KEYS, &["subagentRunId"]] };
    (@keys $name:ident subagent_run_id base) => { &[Self::KEYS, &["subagentRunId"], BaseEvent::KEYS] };
}

/// A closed set of strings. Any other string is unknown (rule E4); there is no catch-all variant.
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

            fn read(reader: &mut crate::schema::text::Reader<'_, '_>) -> Option<Self> {
                Self::from_wire(reader.plain()?)
            }
        }

        deserialize!($name);
    };
}

/// A union with a discriminator (rule E3): each line has a variant, its tag and its type.
macro_rules! union {
    ($(#[$meta:meta])* pub enum $name:ident by $key:literal { $($(#[$doc:meta])* $variant:ident $tag:literal $member:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq)]
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

            fn read(reader: &mut crate::schema::text::Reader<'_, '_>) -> Option<Self> {
                match reader.tag($key)? {
                    $($tag => <$member as crate::schema::decode::Decode>::read(reader).map($name::$variant),)*
                    _ => None,
                }
            }

            fn check(&self, depth: usize, flaws: &mut crate::schema::check::Flaws) {
                match self { $($name::$variant(member) => crate::schema::decode::Decode::check(member, depth, flaws),)* }
            }
        }

        /// The same as that of the member that it holds.
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self { $($name::$variant(member) => member.fmt(f),)* }
            }
        }

        deserialize!($name);

        $(
            impl From<$member> for $name {
                fn from(member: $member) -> Self {
                    $name::$variant(member)
                }
            }
        )*
    };
}
