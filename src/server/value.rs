//! Values of settings as text: their types, which texts are values of them, and what is said of the others.
//!
//! Types, bounds and the words of complaint are those of a broker, so that tools show what their users know.

/// The type of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    String,
    Int,
    Short,
    Long,
    Double,
    List,
    Password,
}

impl Kind {
    /// The number in a `DescribeConfigs` answer.
    pub(crate) fn wire(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
            Self::Password => 9,
        }
    }

    /// Kafka's name of the type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::String => "STRING",
            Self::Int => "INT",
            Self::Short => "SHORT",
            Self::Long => "LONG",
            Self::Double => "DOUBLE",
            Self::List => "LIST",
            Self::Password => "PASSWORD",
        }
    }

    fn bounds(self) -> Option<(i64, i64)> {
        match self {
            Self::Int => Some((i32::MIN.into(), i32::MAX.into())),
            Self::Short => Some((i16::MIN.into(), i16::MAX.into())),
            Self::Long => Some((i64::MIN, i64::MAX)),
            _ => None,
        }
    }
}

/// Which values of a type are allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Valid {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    /// Between the two, or -1.
    BetweenOrDefault(i64, i64),
    /// Of a number with a fraction: from 0 to 1.
    Fraction,
    OneOf(&'static [&'static str]),
    /// Of a list: each.
    EachOf(&'static [&'static str]),
    /// `*`, or a list of `partition:broker`.
    Throttled,
    NotEmpty,
}

/// The text in its one form (trimmed, numbers as numbers, each word of a list once), or what is wrong with it.
pub(crate) fn check(name: &str, kind: Kind, valid: Valid, text: &str) -> Result<String, String> {
    let wrong = |value: &str, what: &str| format!("Invalid value {value} for configuration {name}: {what}");
    let text = text.trim();
    match kind {
        Kind::Boolean => match text.to_ascii_lowercase().as_str() {
            value @ ("true" | "false") => Ok(value.to_owned()),
            _ => Err(wrong(text, "Expected value to be either true or false")),
        },
        Kind::Int | Kind::Short | Kind::Long => {
            let not_a_number = || wrong(text, &format!("Not a number of type {}", kind.name()));
            let number = text.parse::<i64>().ok();
            let number = number
                .filter(|number| kind.bounds().is_none_or(|(least, most)| (least..=most).contains(number)));
            let number = number.ok_or_else(not_a_number)?;
            let complaint = match valid {
                Valid::AtLeast(least) | Valid::Between(least, _) if number < least => {
                    format!("Value must be at least {least}")
                }
                Valid::Between(_, most) if number > most => format!("Value must be no more than {most}"),
                Valid::BetweenOrDefault(least, most) if number != -1 && !(least..=most).contains(&number) => {
                    format!("Value must be between {least} and {most} or equal to -1")
                }
                _ => return Ok(number.to_string()),
            };
            Err(wrong(text, &complaint))
        }
        Kind::Double => {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            let number = number.ok_or_else(|| wrong(text, "Not a number of type DOUBLE"))?;
            match valid {
                Valid::Fraction if number < 0.0 => {
                    Err(wrong(&java_double(number), "Value must be at least 0"))
                }
                Valid::Fraction if number > 1.0 => {
                    Err(wrong(&java_double(number), "Value must be no more than 1"))
                }
                _ => Ok(java_double(number)),
            }
        }
        Kind::String | Kind::Password => match valid {
            Valid::OneOf(words) if !words.contains(&text) => {
                Err(wrong(text, &format!("String must be one of: {}", words.join(", "))))
            }
            Valid::NotEmpty if text.is_empty() => Err(wrong(text, "String may not be empty")),
            _ => Ok(text.to_owned()),
        },
        Kind::List => {
            let items = list(text);
            match valid {
                Valid::EachOf(words) => {
                    if let Some(odd) = items.iter().find(|item| !words.contains(&item.as_str())) {
                        return Err(wrong(odd, &format!("String must be one of: {}", words.join(", "))));
                    }
                }
                Valid::Throttled if !is_throttled(&items) => {
                    let what = format!(
                        "{name} must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
                    );
                    return Err(wrong(&format!("[{}]", items.join(", ")), &what));
                }
                Valid::NotEmpty if items.is_empty() => return Err(wrong("[]", "List may not be empty")),
                _ => {}
            }
            Ok(items.join(","))
        }
    }
}

/// The words of a list, each once, in their order.
pub(crate) fn list(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        if !items.iter().any(|known| known == item) {
            items.push(item.to_owned());
        }
    }
    items
}

fn is_throttled(items: &[String]) -> bool {
    let is_pair = |item: &String| {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        item.split_once(':').is_some_and(|(partition, broker)| number(partition) && number(broker))
    };
    items.iter().map(String::as_str).eq(["*"]) || items.iter().all(is_pair)
}

/// As Java writes it: with a fraction.
fn java_double(number: f64) -> String {
    format!("{number:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The complaints are what a broker of version 4.4 said when asked.
    #[test]
    fn values_are_taken_and_refused_as_a_broker_does() {
        let int = |valid, text| check("segment.bytes", Kind::Int, valid, text);
        assert_eq!(int(Valid::AtLeast(1), " 77 "), Ok("77".to_owned()));
        assert_eq!(
            int(Valid::AtLeast(1_048_576), "1"),
            Err("Invalid value 1 for configuration segment.bytes: Value must be at least 1048576".to_owned())
        );
        for odd in ["x", "", "2147483648", "1.5", "0x10", "1 2"] {
            let complaint =
                format!("Invalid value {odd} for configuration segment.bytes: Not a number of type INT");
            assert_eq!(int(Valid::Any, odd), Err(complaint));
        }
        let policy = |text| check("cleanup.policy", Kind::List, Valid::EachOf(&["compact", "delete"]), text);
        assert_eq!(policy("delete,delete"), Ok("delete".to_owned()));
        assert_eq!(policy(" compact , delete"), Ok("compact,delete".to_owned()));
        assert_eq!(policy(""), Ok(String::new()));
        assert_eq!(
            policy("foo").unwrap_err(),
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete"
        );
        let preallocate = |text| check("preallocate", Kind::Boolean, Valid::Any, text);
        assert_eq!(preallocate("TRUE"), Ok("true".to_owned()));
        assert_eq!(
            preallocate("maybe").unwrap_err(),
            "Invalid value maybe for configuration preallocate: Expected value to be either true or false"
        );
        let level = |text| check("compression.gzip.level", Kind::Int, Valid::BetweenOrDefault(1, 9), text);
        assert!(level("-1").is_ok() && level("9").is_ok());
        assert_eq!(
            level("0").unwrap_err(),
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1"
        );
        let ratio = |text| check("min.cleanable.dirty.ratio", Kind::Double, Valid::Fraction, text);
        assert_eq!((ratio("0.5"), ratio("1")), (Ok("0.5".to_owned()), Ok("1.0".to_owned())));
        assert_eq!(
            ratio("2").unwrap_err(),
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"
        );
        assert!(ratio("NaN").is_err());
        let kind = |text| {
            let words = Valid::OneOf(&["CreateTime", "LogAppendTime"]);
            check("message.timestamp.type", Kind::String, words, text)
        };
        assert!(kind("CreateTime").is_ok() && kind("createtime").is_err());
        let throttled =
            |text| check("leader.replication.throttled.replicas", Kind::List, Valid::Throttled, text);
        assert!(throttled("").is_ok() && throttled("*").is_ok() && throttled("0:1,1:1").is_ok());
        assert!(throttled("x").is_err() && throttled("*,0:1").is_err() && throttled("0:").is_err());
    }
}
