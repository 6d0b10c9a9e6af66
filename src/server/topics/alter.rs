//! Changing a topic's settings: all of them at once, or some.

use super::{
    super::{
        error_code::{ErrorCode, Refusal},
        value::{Kind, check, list},
    },
    config::{Overrides, check_together, checked},
    keys::topic_key,
};

/// What to do with one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Set,
    /// Back to the default.
    Delete,
    /// Add words to a list.
    Append,
    /// Take words out of a list.
    Subtract,
}

impl Change {
    /// The operation of this number in a request.
    pub(crate) fn of_wire(number: i8) -> Option<Self> {
        Some(match number {
            0 => Self::Set,
            1 => Self::Delete,
            2 => Self::Append,
            3 => Self::Subtract,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Set => "SET",
            Self::Delete => "DELETE",
            Self::Append => "APPEND",
            Self::Subtract => "SUBTRACT",
        }
    }
}

fn invalid(message: String) -> Refusal {
    Refusal::new(ErrorCode::INVALID_CONFIG, message)
}

/// `AlterConfigs`: what is not named goes back to its default.
pub(super) fn replaced(settings: &[(&str, Option<&str>)]) -> Result<Overrides, Refusal> {
    check_once(settings.iter().map(|(name, _)| *name))?;
    if let Some((name, _)) = settings.iter().find(|(_, value)| value.is_none()) {
        return Err(null_value(name));
    }
    checked(settings.iter().copied()).map_err(invalid)
}

/// `IncrementalAlterConfigs`: what is not named stays. `in_force` gives the value that a list is changed from.
pub(super) fn changed(
    before: &Overrides,
    changes: &[(&str, Change, Option<&str>)],
    in_force: impl Fn(&str) -> String,
) -> Result<Overrides, Refusal> {
    check_once(changes.iter().map(|(name, _, _)| *name))?;
    let mut after = before.clone();
    for (name, change, value) in changes {
        if *change == Change::Delete {
            after.remove(*name);
            continue;
        }
        let key = topic_key(name).ok_or_else(|| invalid(format!("Unknown topic config name: {name}")))?;
        let value = value.ok_or_else(|| null_value(name))?;
        let text = match change {
            Change::Set | Change::Delete => value.to_owned(),
            Change::Append | Change::Subtract if key.kind != Kind::List => {
                let verb = change.name();
                return Err(invalid(format!("Can't {verb} to key {name} because its type is not LIST.")));
            }
            Change::Append => format!("{},{value}", in_force(name)),
            Change::Subtract => {
                let gone = list(value);
                let kept: Vec<_> =
                    list(&in_force(name)).into_iter().filter(|item| !gone.contains(item)).collect();
                kept.join(",")
            }
        };
        let checked = check(name, key.kind, key.valid, &text).map_err(invalid)?;
        after.insert((*name).to_owned(), checked);
    }
    check_together(&after).map_err(invalid)?;
    Ok(after)
}

fn null_value(name: &str) -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, format!("Null value not supported for : {name}"))
}

fn check_once<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Refusal> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair.first() == pair.last()) {
        Some(pair) => {
            let name = pair.first().copied().unwrap_or_default();
            Err(Refusal::new(
                ErrorCode::INVALID_REQUEST,
                format!("Error due to duplicate config keys: {name}"),
            ))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(pairs: &[(&str, &str)]) -> Overrides {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// The outcomes are what a broker of version 4.4 did when asked.
    #[test]
    fn changes_do_what_a_broker_does() {
        let before = overrides(&[("cleanup.policy", "delete"), ("flush.ms", "5")]);
        let one = |name, change, value| {
            let in_force = |name: &str| before.get(name).cloned().unwrap_or_default();
            changed(&before, &[(name, change, value)], in_force)
        };
        let policy = |result: Result<Overrides, Refusal>| result.unwrap()["cleanup.policy"].clone();
        assert_eq!(policy(one("cleanup.policy", Change::Append, Some("compact"))), "delete,compact");
        assert_eq!(policy(one("cleanup.policy", Change::Append, Some("delete"))), "delete");
        assert_eq!(policy(one("cleanup.policy", Change::Subtract, Some("compact"))), "delete");
        assert_eq!(policy(one("cleanup.policy", Change::Subtract, Some("delete"))), "");
        assert_eq!(
            one("segment.bytes", Change::Append, Some("5")).unwrap_err(),
            invalid("Can't APPEND to key segment.bytes because its type is not LIST.".to_owned())
        );
        let kept = one("flush.ms", Change::Delete, None).unwrap();
        assert_eq!(kept, overrides(&[("cleanup.policy", "delete")]));
        assert_eq!(one("nope", Change::Delete, Some("")).unwrap(), before);
        assert_eq!(
            one("nope", Change::Set, Some("1")).unwrap_err(),
            invalid("Unknown topic config name: nope".to_owned())
        );
        assert_eq!(
            one("retention.ms", Change::Set, None).unwrap_err(),
            Refusal::new(ErrorCode::INVALID_REQUEST, "Null value not supported for : retention.ms")
        );
        assert!(one("remote.storage.enable", Change::Set, Some("true")).is_err());
        let twice = [("flush.ms", Change::Set, Some("1")), ("flush.ms", Change::Delete, None)];
        assert_eq!(changed(&before, &twice, |_| String::new()).unwrap_err().code, ErrorCode::INVALID_REQUEST);
    }

    #[test]
    fn replacing_takes_back_what_is_not_named() {
        let after = replaced(&[("retention.ms", Some(" 1000 "))]).unwrap();
        assert_eq!(after, overrides(&[("retention.ms", "1000")]));
        assert_eq!(replaced(&[]).unwrap(), Overrides::new());
        assert!(replaced(&[("nope", Some("1"))]).is_err());
        assert!(
            replaced(&[("min.compaction.lag.ms", Some("5")), ("max.compaction.lag.ms", Some("4"))]).is_err()
        );
    }
}
