//! Values as `Debug` shows them, taken apart, so that two types with the same fields can be compared.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A number, a truth value, `None`, or text in its quotes.
    Atom(String),
    List(Vec<Value>),
    Struct(BTreeMap<String, Value>),
}

/// What a field is called in the other codec and here; Kafka's own name is that here.
const RENAMED: &[(&str, &str)] =
    &[("enable_2_pc", "enable2_pc"), ("generation_id", "generation_id_or_member_epoch")];

/// Names of types, `Some` and other wrappers of one value are dropped; bytes and UUIDs are lists of numbers.
pub(crate) fn parse(text: &str) -> Value {
    let mut rest = text;
    let value = value(&mut rest);
    assert!(rest.is_empty(), "left over: {rest}");
    value
}

/// Each field of `theirs` against the one of this name in `ours`.
pub(crate) fn same(ours: &Value, theirs: &Value) -> Result<(), String> {
    match (ours, theirs) {
        (Value::Struct(ours), Value::Struct(theirs)) => theirs.iter().try_for_each(|(name, theirs)| {
            if name == "unknown_tagged_fields" {
                return Ok(());
            }
            let renamed =
                RENAMED.iter().find(|(theirs, _)| theirs == name).and_then(|(_, name)| ours.get(*name));
            let ours = ours.get(name).or(renamed).ok_or_else(|| format!("{name} is not ours"))?;
            same(ours, theirs).map_err(|difference| format!("{name}: {difference}"))
        }),
        (Value::List(ours), Value::List(theirs)) if ours.len() == theirs.len() => {
            ours.iter().zip(theirs).try_for_each(|(ours, theirs)| same(ours, theirs))
        }
        _ if ours == theirs => Ok(()),
        _ => Err(format!("ours {ours:?}, theirs {theirs:?}")),
    }
}

fn value(rest: &mut &str) -> Value {
    if let Some(after) = rest.strip_prefix("b\"") {
        *rest = after;
        return Value::List(
            byte_string(rest).into_iter().map(|byte| Value::Atom(byte.to_string())).collect(),
        );
    }
    if rest.starts_with('"') {
        return Value::Atom(quoted(rest));
    }
    if rest.starts_with('[') {
        return list(rest);
    }
    if rest.starts_with('{') {
        return fields(rest);
    }
    let end = rest.find([',', ')', ']', '}', ' ', '(']).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after;
    if let Some(after) = rest.strip_prefix('(') {
        *rest = after;
        let inner = value(rest);
        expect(rest, ")");
        return inner;
    }
    if rest.starts_with(" {") {
        expect(rest, " ");
        return fields(rest);
    }
    uuid(word).unwrap_or_else(|| Value::Atom(word.to_owned()))
}

fn expect(rest: &mut &str, token: &str) {
    *rest = rest.strip_prefix(token).unwrap_or_else(|| panic!("no {token} at {rest}"));
}

fn list(rest: &mut &str) -> Value {
    expect(rest, "[");
    let mut elements = Vec::new();
    while !rest.starts_with(']') {
        elements.push(value(rest));
        *rest = rest.strip_prefix(", ").unwrap_or(rest);
    }
    expect(rest, "]");
    Value::List(elements)
}

fn fields(rest: &mut &str) -> Value {
    expect(rest, "{");
    let mut fields = BTreeMap::new();
    while !rest.starts_with('}') {
        *rest = rest.trim_start_matches([' ', ',']);
        let (name, after) = rest.split_once(": ").unwrap();
        *rest = after;
        let name = name.strip_prefix("r#").unwrap_or(name).trim_matches('_').to_owned();
        fields.insert(name, value(rest));
        *rest = rest.trim_start_matches([' ', ',']);
    }
    expect(rest, "}");
    Value::Struct(fields)
}

/// The literal with its quotes.
fn quoted(rest: &mut &str) -> String {
    let mut escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, letter)| {
        let ends = *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        ends
    });
    let (literal, after) = rest.split_at(end.unwrap().0 + 1);
    *rest = after;
    literal.to_owned()
}

fn byte_string(rest: &mut &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let (first, after) = rest.split_at(1);
        *rest = after;
        match first {
            "\"" => return bytes,
            "\\" => {
                let (kind, after) = rest.split_at(1);
                *rest = after;
                bytes.push(match kind {
                    "n" => b'\n',
                    "r" => b'\r',
                    "t" => b'\t',
                    "0" => 0,
                    "x" => {
                        let (digits, after) = rest.split_at(2);
                        *rest = after;
                        u8::from_str_radix(digits, 16).unwrap()
                    }
                    other => other.as_bytes()[0],
                });
            }
            other => bytes.push(other.as_bytes()[0]),
        }
    }
}

fn uuid(word: &str) -> Option<Value> {
    let digits = word.replace('-', "");
    if word.len() != 36 || digits.len() != 32 {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).ok();
    let bytes = (0..16).map(byte).collect::<Option<Vec<_>>>()?;
    Some(Value::List(bytes.into_iter().map(|byte| Value::Atom(byte.to_string())).collect()))
}

#[test]
fn what_debug_shows_is_taken_apart() {
    let ours = r#"A { name: "a, \"b\" {", id: Uuid([0, 1]), list: [Some(-1), None], r#type: 3, b: Some(Bytes([10])) }"#;
    let theirs =
        r#"B { name: "a, \"b\" {", list: [-1, None], b: b"\n", type_: 3, unknown_tagged_fields: {} }"#;
    same(&parse(ours), &parse(theirs)).unwrap();
    assert!(same(&parse(ours), &parse(&theirs.replace("-1", "1"))).unwrap_err().starts_with("list: "));
    let id = "00010203-0405-0607-0809-0a0b0c0d0eff";
    let list = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]";
    assert_eq!(parse(id), parse(list));
}
