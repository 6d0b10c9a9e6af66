use stratalog::{
    Offset, Timestamp,
    record::{BatchBuilder, BatchOptions, BatchRef, Header, Record, Scratch},
};

use super::*;
use crate::{
    target::Target,
    view::{BatchView, View},
};

/// Whether it holds for the record at offset 7 of `t-2`: key `k1`, value `25.5` or null, one second after 1970.
fn holds(text: &str, value: Option<&[u8]>) -> bool {
    let expression = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let headers = [
        Header { key: "a", value: Some(b"x") },
        Header { key: "a", value: Some(b"y") },
        Header { key: "b c", value: None },
    ];
    let record = Record { key: Some(b"k1"), value, ..Record::new() };
    let record = record.headers(&headers).timestamp(Timestamp::from_millis(1000));
    let base_offset = Offset::new(7).unwrap();
    let mut builder =
        BatchBuilder::new(BatchOptions { base_offset, leader_epoch: 3, ..BatchOptions::default() });
    builder.push(record).unwrap();
    let batch = BatchRef::parse(builder.finish().unwrap()).unwrap();
    let target = Target::new("t-2".into(), false);
    let mut scratch = Scratch::default();
    let record = batch.records(&mut scratch).unwrap().next().unwrap().unwrap();
    expression.holds(&View::new(&target, BatchView::new(&batch), &record))
}

#[test]
fn what_holds() {
    for text in [
        "offset = 7",
        "7 == offset and 8 > offset",
        "offset >= 7 && offset <= 7 && offset != 8 && offset < 8 && offset > 6",
        "timestamp = 1000",
        "timestamp >= @1970-01-01 and timestamp < @1970-01-01T00:00:02Z",
        "timestamp < '1970-01-02' and timestamp < @\"1970-01-01 00:00:02\" and time < @-15m",
        "partition = 2 and epoch = 3 and producer_id = -1 and producer_epoch = -1",
        "size = 6 and key_size = 2 and value_size = 4 and header_count = 3",
        "size < 1KiB",
        "topic = 't'",
        "key = 'k1' and key != \"k2\" and key > 'k0' and key < 'k2'",
        "key =~ '^k\\d$' and key !~ 'x'",
        "value = 25.5 and value > 25 and value < 26 and value > -1.5e3",
        "value != 7 and key != 7",
        "not (value < 25)",
        "headers.a = 'y' and header.a != 'x'",
        "headers[\"b c\"] is null and headers.none is null and is_null(headers.none)",
        "headers.none != 'x' and not headers.none = 'x' and not headers.none < 'x'",
        "value is not null and key != null and not key = null",
        "offset = 1 or offset = 7 and key = 'k1'",
        "NOT offset = 1 AND !(offset = 2) Or key is NULL",
    ] {
        assert!(holds(text, Some(b"25.5")), "{text}");
    }
    for text in
        ["offset = 8", "key = 'k'", "headers.a = 'x'", "value is null", "value > 26", "key < 9", "key = 9"]
    {
        assert!(!holds(text, Some(b"25.5")), "{text}");
    }
    // `and` binds tighter than `or`.
    assert!(holds("offset = 7 or offset = 1 and offset = 2", None));
    assert!(!holds("(offset = 7 or offset = 1) and offset = 2", None));
}

#[test]
fn null_is_not_empty() {
    for text in
        ["value is null", "value = null", "is_null(value)", "value != ''", "value != 0", "value !~ '.*'"]
    {
        assert!(holds(text, None), "{text}");
    }
    for text in ["value = ''", "value < 'z'", "value > ''", "value =~ ''", "value is not null", "value >= 0"]
    {
        assert!(!holds(text, None), "{text}");
    }
    assert!(holds("value = '' and value is not null and value =~ '^$'", Some(b"")));
}

#[test]
fn mistakes_are_shown_where_they_are() {
    for (text, at, word) in [
        ("", 0, "expected a field"),
        ("offset", 6, "operator"),
        ("offset >", 8, "expected a field"),
        ("offset > x", 9, "no field"),
        ("offset > 'x'", 9, "whole number"),
        ("offset > 1.5", 9, "whole number"),
        ("offset is null", 0, "can be null"),
        ("offset = null", 9, "never null"),
        ("offset =~ '1'", 0, "compared with"),
        ("key = k1", 6, "quotes"),
        ("key < null", 6, "is null"),
        ("key =~ '('", 7, "unclosed"),
        ("'x' =~ key", 0, "left of"),
        ("key = 'a\\q'", 8, "unknown escape"),
        ("key != \"\\x4\"", 8, "hexadecimal"),
        ("headers['\\d'] = 'x'", 9, "unknown escape"),
        ("'\\.' = key", 1, "unknown escape"),
        ("key = value", 6, "two fields"),
        ("1 = 1", 0, "no field in"),
        ("key = 'x", 6, "not closed"),
        ("(key = 'x'", 10, "`)`"),
        ("key = 'x')", 9, "`and`, `or`"),
        ("key = 'x' key = 'y'", 10, "`and`, `or`"),
        ("timestamp > @soon", 12, "not a time"),
        ("timestamp > 5x", 12, "no number"),
        ("key = @now", 6, "belong to timestamp"),
        ("headers = 'x'", 8, "header's name"),
        ("headers[x] = 'x'", 8, "header's name"),
        ("is_null(offset)", 8, "can be null"),
        ("key is empty", 7, "`null`"),
        ("\u{e9} = 1", 0, "nothing here"),
    ] {
        let error = parse(text).err().unwrap_or_else(|| panic!("{text} is taken"));
        let caret = error.lines().last().unwrap();
        assert!(error.contains(word), "{text}: {error}");
        assert_eq!(caret.chars().count(), at + 3, "{text}: {error}");
        assert!(caret.ends_with('^'), "{error}");
    }
}

#[test]
fn how_deep_it_nests_is_bounded() {
    let nested = |depth: usize| format!("{}offset = 1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(parse(&nested(60)).is_ok());
    assert!(parse(&nested(64)).unwrap_err().contains("more than 64"));
    assert!(parse(&nested(1_000_000)).is_err());
    assert!(parse(&format!("{}offset = 1", "not ".repeat(100_000))).is_err());
    let long = vec!["offset = 1"; 100_000].join(" or ");
    assert!(parse(&long).is_ok());
}

proptest::proptest! {
    #[test]
    fn any_text_is_an_expression_or_a_mistake(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "offset", "key", "value", "headers", ".a", "[", "]", "'x'", "\"", "=", "=~", "<", "is", "not", "null", "and", "or", "(",
                ")", "@", "-15m", "5", "1.5", "1KiB", "\u{e9}", "\\", "is_null",
            ]),
            0..12,
        ),
        gap in proptest::bool::ANY,
    ) {
        let text = words.join(if gap { " " } else { "" });
        if let Err(shown) = parse(&text) {
            proptest::prop_assert!(shown.ends_with('^'));
        }
    }
}
