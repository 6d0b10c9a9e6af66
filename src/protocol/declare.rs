//! The declaration of structs: fields with the versions that have them; reading and writing follow from it.
//!
//! ```text
//! message! {
//!     pub struct ProduceRequest<'a> {
//!         transactional_id: Option<&'a str>, 3..;             // from version 3 on; null allowed in all of them
//!         topic: &'a str, 0..=12;                             // up to version 12
//!         name: Option<&'a str>, 0.., null 10..;              // null allowed from version 10 on
//!         leader_epoch: i32 = -1, 7..;                        // what it is where the version does not have it
//!         current_leader: LeaderIdAndEpoch, 10.., tag 0;      // tagged: written where it differs from its default
//!     }
//! }
//! ```
//!
//! A field that the version does not have is left out when writing, whatever its value. Unknown tagged fields are
//! stepped over.

/// A range of versions as in a declaration; nothing stands for all.
macro_rules! versions {
    (($from:literal ..)) => {
        $crate::protocol::Versions::new($from, i16::MAX)
    };
    (($from:literal ..= $to:literal)) => {
        $crate::protocol::Versions::new($from, $to)
    };
    (()) => {
        $crate::protocol::Versions::new(0, i16::MAX)
    };
}

/// The value of a field that is not there.
macro_rules! absent {
    () => {
        Default::default()
    };
    ($value:expr) => {
        $value
    };
}

/// The tag of a field.
macro_rules! tag {
    () => {
        None
    };
    ($tag:literal) => {
        Some($tag)
    };
}

/// 1 if a tagged field is to be written.
macro_rules! one {
    ($tag:literal if $present:expr) => {
        u32::from($present)
    };
}

/// Expands to its second part where its first is empty: the fields without a tag.
macro_rules! untagged {
    ([] $($code:tt)*) => { $($code)* };
    ([$tag:literal] $($code:tt)*) => {};
}

/// Structs of the protocol: see the module's documentation.
macro_rules! message {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident $(<$life:lifetime>)? {$(
            $(#[$field_meta:meta])*
            $field:ident : $type:ty $(= $default:expr)?, $from:literal $dots:tt $($to:literal)?
            $(, null $null_from:literal $null_dots:tt $($null_to:literal)?)? $(, tag $tag:literal)?;
        )*}
    )*) => {$(
        implement! {
            $(#[$meta])*
            $name [$($life)?]
            $(
                $(#[$field_meta])*
                #[doc = concat!("In versions `", stringify!($from $dots $($to)?), "`.")]
                $(#[doc = concat!("Null in versions `", stringify!($null_from $null_dots $($null_to)?), "`.")])?
                $(#[doc = concat!("Tagged field ", stringify!($tag), ".")])?
                $field [$type] [$($default)?] ($from $dots $($to)?) ($($null_from $null_dots $($null_to)?)?) [$($tag)?]
            )*
        }
    )*};
}

/// The code of one struct, from its declaration in a regular form.
macro_rules! implement {
    (
        $(#[$meta:meta])*
        $name:ident [$($life:lifetime)?]
        $(
            $(#[$field_meta:meta])*
            $field:ident [$type:ty] [$($default:expr)?] $versions:tt $null:tt [$($tag:literal)?]
        )*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name $(<$life>)? {$(
            $(#[$field_meta])*
            pub $field: $type,
        )*}

        impl $(<$life>)? Default for $name $(<$life>)? {
            fn default() -> Self {
                Self { $($field: absent!($($default)?),)* }
            }
        }

        impl<'a> $crate::protocol::wire::Wire<'a> for $name $(<$life>)? {
            const SHAPE: $crate::protocol::wire::Shape = $crate::protocol::wire::Shape::Struct(&[$(
                $crate::protocol::wire::FieldShape {
                    name: stringify!($field),
                    versions: versions!($versions),
                    null: versions!($null),
                    tag: tag!($($tag)?),
                    shape: <$type as $crate::protocol::wire::Wire<'a>>::SHAPE,
                },
            )*]);

            fn min_bytes(form: $crate::protocol::wire::Form) -> usize {
                let mut sum = usize::from(form.flexible);
                $(untagged!([$($tag)?] {
                    if versions!($versions).contains(form.version) {
                        let nullable = versions!($null).contains(form.version);
                        let form = $crate::protocol::wire::Form { nullable, ..form };
                        sum += <$type as $crate::protocol::wire::Wire<'a>>::min_bytes(form);
                    }
                });)*
                sum
            }

            fn decode_in(
                reader: &mut $crate::protocol::wire::Reader<'a>,
                form: $crate::protocol::wire::Form,
            ) -> Result<Self, $crate::protocol::DecodeError> {
                let mut this = Self::default();
                $(untagged!([$($tag)?] {
                    if versions!($versions).contains(form.version) {
                        let nullable = versions!($null).contains(form.version);
                        let form = $crate::protocol::wire::Form { nullable, ..form };
                        this.$field = $crate::protocol::wire::Wire::decode_in(reader, form)
                            .map_err(|error| error.in_field(concat!(stringify!($name), ".", stringify!($field))))?;
                    }
                });)*
                if form.flexible {
                    let in_tags =
                        |error: $crate::protocol::DecodeError| error.in_field(concat!(stringify!($name), ".tags"));
                    for _ in 0..reader.tag_count().map_err(in_tags)? {
                        let (tag, value) = reader.tag().map_err(in_tags)?;
                        match (tag, value) {
                            $($(
                                ($tag, value) if versions!($versions).contains(form.version) => {
                                    let nullable = versions!($null).contains(form.version);
                                    let form = $crate::protocol::wire::Form { nullable, ..form };
                                    this.$field = reader.only(value, form).map_err(|error| {
                                        error.in_field(concat!(stringify!($name), ".", stringify!($field)))
                                    })?;
                                }
                            )?)*
                            _ => {}
                        }
                    }
                }
                Ok(this)
            }

            fn encode_in(
                &self,
                writer: &mut $crate::protocol::wire::Writer,
                form: $crate::protocol::wire::Form,
            ) -> Result<(), $crate::protocol::EncodeError> {
                $(untagged!([$($tag)?] {
                    if versions!($versions).contains(form.version) {
                        let nullable = versions!($null).contains(form.version);
                        let form = $crate::protocol::wire::Form { nullable, ..form };
                        $crate::protocol::wire::Wire::encode_in(&self.$field, writer, form)
                            .map_err(|error| error.in_field(concat!(stringify!($name), ".", stringify!($field))))?;
                    }
                });)*
                if form.flexible {
                    let count = 0 $($(+ one!($tag if versions!($versions).contains(form.version)
                        && self.$field != Self::default().$field))?)*;
                    writer.put_varint(count);
                    $($(
                        if versions!($versions).contains(form.version) && self.$field != Self::default().$field {
                            let nullable = versions!($null).contains(form.version);
                            let form = $crate::protocol::wire::Form { nullable, ..form };
                            writer
                                .put_tag($tag, |writer| $crate::protocol::wire::Wire::encode_in(&self.$field, writer, form))
                                .map_err(|error| error.in_field(concat!(stringify!($name), ".", stringify!($field))))?;
                        }
                    )?)*
                }
                Ok(())
            }
        }

        impl<'a> $crate::protocol::wire::WireNullable<'a> for $name $(<$life>)? {
            fn null_bytes(_: $crate::protocol::wire::Form) -> usize {
                1
            }

            fn decode_nullable(
                reader: &mut $crate::protocol::wire::Reader<'a>,
                form: $crate::protocol::wire::Form,
            ) -> Result<Option<Self>, $crate::protocol::DecodeError> {
                let [presence] = reader.array()?;
                if i8::from_be_bytes([presence]) < 0 {
                    return Ok(None);
                }
                $crate::protocol::wire::Wire::decode_in(reader, form).map(Some)
            }

            fn encode_nullable(
                value: Option<&Self>,
                writer: &mut $crate::protocol::wire::Writer,
                form: $crate::protocol::wire::Form,
            ) -> Result<(), $crate::protocol::EncodeError> {
                let Some(value) = value else {
                    writer.put(&[0xFF]);
                    return Ok(());
                };
                writer.put(&[1]);
                $crate::protocol::wire::Wire::encode_in(value, writer, form)
            }
        }
    };
}

/// Ties a request and its response to their API.
macro_rules! api {
    ($api:ident: $request:ident $(<$life:lifetime>)? => $response:ident $(<$response_life:lifetime>)?) => {
        impl<'a> $crate::protocol::Message<'a> for $request $(<$life>)? {
            const API: $crate::protocol::ApiKey = $crate::protocol::ApiKey::$api;
        }

        impl<'a> $crate::protocol::Request<'a> for $request $(<$life>)? {
            type Response<'r> = $response $(<$response_life>)?;
        }

        impl<'r> $crate::protocol::Message<'r> for $response $(<$response_life>)? {
            const API: $crate::protocol::ApiKey = $crate::protocol::ApiKey::$api;
        }

        impl<'r> $crate::protocol::Response<'r> for $response $(<$response_life>)? {}
    };
}
