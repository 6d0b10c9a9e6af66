use super::*;

/// A record: key, value, headers, timestamp, offset.
type Fields = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<(String, Vec<u8>)>, Option<i64>, Option<i64>);

fn parsed(template: &str) -> Layout {
    let mut layout = Layout::parse(template).unwrap_or_else(|e| panic!("{template}: {e}"));
    layout.limit(1000);
    layout
}

/// All records of the input, however much of it is there at once.
fn read(template: &str, input: &[u8]) -> Result<Vec<Fields>, String> {
    let mut outcomes = Vec::new();
    for step in [1, 2, 5, input.len().max(1)] {
        let mut layout = parsed(template);
        outcomes.push(read_in_steps(&mut layout, input, step));
    }
    // A mistake is told once it shows, which may be before the input is all there.
    let last = outcomes.pop().unwrap();
    for outcome in outcomes {
        match (&outcome, &last) {
            (Err(_), Err(_)) => {}
            _ => assert_eq!(outcome, last, "{template}"),
        }
    }
    last
}

fn read_in_steps(layout: &mut Layout, input: &[u8], step: usize) -> Result<Vec<Fields>, String> {
    let (mut begin, mut there, mut found) = (0, step.min(input.len()), Vec::new());
    loop {
        let is_all = there == input.len();
        match layout.read(&input[begin..there], is_all)? {
            Outcome::End => return Ok(found),
            Outcome::More => there = (there + step).min(input.len()),
            Outcome::Record(record, taken) => {
                let own = |bytes: Option<Cow<'_, [u8]>>| bytes.map(Cow::into_owned);
                let Found { key, value, headers, timestamp, offset } = *record;
                found.push((own(key), own(value), headers, timestamp, offset));
                begin += taken;
            }
        }
    }
}

fn pair(key: &[u8], value: &[u8]) -> Fields {
    (Some(key.to_vec()), Some(value.to_vec()), Vec::new(), None, None)
}

fn value(value: &[u8]) -> Fields {
    (None, Some(value.to_vec()), Vec::new(), None, None)
}

#[test]
fn delimiters() {
    assert_eq!(read("%v\\n", b"a\n\nb"), Ok(vec![value(b"a"), value(b""), value(b"b")]));
    assert_eq!(read("%k %v\\n", b"k v w\n v\n"), Ok(vec![pair(b"k", b"v w"), pair(b"", b"v")]));
    assert_eq!(read("%k\\n%v\\n", b"k\nv\n"), Ok(vec![pair(b"k", b"v")]));
    assert_eq!(read("key: %k, value: %v\\n", b"key: a, value: b, c\n"), Ok(vec![pair(b"a", b"b, c")]));
    assert_eq!(read("%v%%%{\\x41", b"x%{A"), Ok(vec![value(b"x")]));
    assert_eq!(read("%v", b"all\nof it"), Ok(vec![value(b"all\nof it")]));
    assert_eq!(read("%v\\n", b""), Ok(vec![]));
    assert!(read("%k %v\\n", b"k").unwrap_err().contains("midst"));
    let error = read("key: %k, %v\\n", b"key: a, b\nkay").unwrap_err();
    assert!(error.contains("expected `key: `, found `kay`"), "{error}");
}

#[test]
fn sizes() {
    assert_eq!(read("%K{big32}%k%V{big32}%v", b"\0\0\0\x01k\0\0\0\x02vw"), Ok(vec![pair(b"k", b"vw")]));
    assert_eq!(read("%K %V %k%v\\n", b"1 2 kvw\n0 0 \n"), Ok(vec![pair(b"k", b"vw"), pair(b"", b"")]));
    assert_eq!(
        read("%V %v\\n", b"3 a\nb"),
        Ok(vec![value(b"a\nb")]),
        "the newline behind the last is missing"
    );
    for (form, bytes) in [
        ("ascii", &b"3:"[..]),
        ("number", b"3:"),
        ("hex64", b"0000000000000003:"),
        ("hex32", b"00000003:"),
        ("hex16", b"0003:"),
        ("hex8", b"03:"),
        ("hex4", b"3:"),
        ("big64", b"\0\0\0\0\0\0\0\x03:"),
        ("big16", b"\0\x03:"),
        ("big8", b"\x03:"),
        ("little64", b"\x03\0\0\0\0\0\0\0:"),
        ("little32", b"\x03\0\0\0:"),
        ("little16", b"\x03\0:"),
        ("little8", b"\x03:"),
        ("byte", b"\x03:"),
        ("3", b":"),
    ] {
        let input = [bytes, b"abc", bytes, b"def"].concat();
        let template = format!("%V{{{form}}}:%v");
        assert_eq!(read(&template, &input), Ok(vec![value(b"abc"), value(b"def")]), "{form}");
    }
    assert_eq!(read("%V{bool}%v", b"truexfalse"), Ok(vec![value(b"x"), value(b"")]));
    assert!(read("%V{big32}%v", b"\xff\xff\xff\xffx").unwrap_err().contains("4294967295"));
    assert!(read("%V{hex8}%v", b"+1x").unwrap_err().contains("a number"));
    assert!(read("%V{byte}%v", b"\x05ab").unwrap_err().contains("midst"), "a value that is cut off");
    assert!(read("%V %v\\n", b"x y\n").unwrap_err().contains("a number"));
}

#[test]
fn headers_and_other_numbers() {
    let with = |headers: &[(&str, &[u8])]| {
        let headers = headers.iter().map(|(k, v)| ((*k).to_owned(), v.to_vec())).collect();
        (None, Some(b"v".to_vec()), headers, None, None)
    };
    let two = with(&[("a", b"1"), ("b", b"")]);
    assert_eq!(read("%H %h{%k=%v,}%v\\n", b"2 a=1,b=,v\n0 v\n"), Ok(vec![two.clone(), with(&[])]));
    let sized = b"v\n\x02\x01a\x011\x01b\0";
    assert_eq!(read("%v\\n%H{byte}%h{%K{byte}%k%V{byte}%v}", sized), Ok(vec![two]));
    assert_eq!(
        read("%K{3}%V{3}%H{1}%k%v%h{%K{3}%k%V{3}%v}", b"kkkvvvhhhxxx"),
        Ok(vec![(
            Some(b"kkk".to_vec()),
            Some(b"vvv".to_vec()),
            vec![("hhh".to_owned(), b"xxx".to_vec())],
            None,
            None
        )])
    );
    assert_eq!(
        read("%t %p %o %e %d %x %y %v\\n", b"t 1 7 2 -5 -1 -1 v\n"),
        Ok(vec![(None, Some(b"v".to_vec()), Vec::new(), Some(-5), Some(7))])
    );
    assert!(read("%H{big64}%h{%K{byte}%k}%v", &[0xff; 40]).is_err());
}

#[test]
fn encodings() {
    assert_eq!(
        read("%k{hex} %v{base64}\\n", b"6b31 aGk=\nFF aGk\n"),
        Ok(vec![pair(b"k1", b"hi"), pair(b"\xff", b"hi")])
    );
    assert_eq!(read("%V%v{hex}", b"4abcd"), Ok(vec![value(b"\xab\xcd")]));
    assert_eq!(
        read("%v{json} %k\\n", b"{ \"foo\" : \" b \\\" \" } k\n[1, 2] l"),
        Ok(vec![pair(b"k", b"{\"foo\":\" b \\\" \"}"), pair(b"l", b"[1,2]")])
    );
    assert_eq!(read("%v{json}", b"{} 12 [\n]\n"), Ok(vec![value(b"{}"), value(b"12"), value(b"[]")]));
    assert_eq!(
        read("%k{re[\\d*]}%v{re[\\s+]}", b"12 \n3\n"),
        Ok(vec![pair(b"12", b" \n"), pair(b"3", b"\n")])
    );
    assert_eq!(read("%k{re#[a-z]+#}-%v\\n", b"ab-c\nd-e"), Ok(vec![pair(b"ab", b"c"), pair(b"d", b"e")]));
    for (template, input, word) in [
        ("%v{hex}\\n", &b"abc\n"[..], "not hexadecimal"),
        ("%v{base64}\\n", b"a*\n", "not base64"),
        ("%v{json}\\n", b"{x}\n", "no JSON"),
        ("%v{json}\\n", b"{\"a\":", "midst"),
        ("%V %v{json}", b"2 {x", "no JSON"),
        ("%k{re[\\d+]}%v\\n", b"x\n", "does not match"),
        ("%v{re[x*]}", b"y", "never end"),
    ] {
        let error = read(template, input).unwrap_err();
        assert!(error.contains(word), "{template}: {error}");
    }
}

#[test]
fn mistakes_are_told_before_anything_is_read() {
    for (template, word) in [
        ("", "no key"),
        ("text", "no key"),
        ("%t\\n", "no key"),
        ("%V{3}", "missing"),
        ("%v%", "single"),
        ("%z%v", "unknown `%z`"),
        ("%k%v", "what ends `%k`"),
        ("%v%V", "what ends `%v`"),
        ("%v %V", "before `%v`"),
        ("%V %V %v", "twice"),
        ("%v %v", "twice"),
        ("%d %d %v", "twice"),
        ("%V{0}%v", "unknown"),
        ("%V{hex}%v", "unknown"),
        ("%V{big32%v", "not closed"),
        ("%d{strftime[%F]} %v", "milliseconds only"),
        ("%v{unpack[i]}\\n", "unknown"),
        ("%v{re[(]}", "unclosed group"),
        ("%v{re}", "brackets"),
        ("%V%v{re[x]}", "has a size"),
        ("%h{%k=%v,} %v", "`%H`"),
        ("%H %v\\n", "`%h{..}` is missing"),
        ("%H%h %v", "how headers"),
        ("%H %h{%k=%v} %v", "last field of a header"),
        ("%H %h{%v,} %v", "`%k` is missing"),
        ("%H %h{%o,} %v", "inside of"),
        ("%H %h{%k, %v", "not closed"),
        ("%H %h{%k,}%h{%k,}", "twice"),
        ("%i %v\\n", "cannot be read"),
        ("\\q%v", "unknown escape"),
    ] {
        let error = Layout::parse(template).err().unwrap_or_else(|| panic!("{template} is taken"));
        assert!(error.contains(word), "{template}: {error}");
    }
}

proptest::proptest! {
    /// Whatever the template and the input: a record, more, the end or an error, and nothing endless.
    #[test]
    fn anything_may_come(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "%k", "%v", "%K", "%V{byte}", "%V{2}", "%H{byte}", "%h{%k=%v,}", "%k{hex}", "%v{json}", "%k{re[a*]}", "%d", ",", "\\n",
            ]),
            1..6,
        ),
        input in proptest::collection::vec(proptest::sample::select(b"a1=,\n{}\"\x00\x02\xff".to_vec()), 0..40),
    ) {
        if let Ok(mut layout) = Layout::parse(&parts.concat()) {
            layout.limit(100);
            let whole = read_in_steps(&mut layout.clone(), &input, input.len().max(1));
            let bytewise = read_in_steps(&mut layout, &input, 1);
            proptest::prop_assert_eq!(whole.is_ok(), bytewise.is_ok());
            if whole.is_ok() {
                proptest::prop_assert_eq!(whole, bytewise);
            }
        }
    }

    #[test]
    fn any_text_is_a_template_or_a_mistake(text in "[%{}\\\\\\[\\]a-zTKVHhkv0-9#]{0,24}") {
        let _ = Layout::parse(&text);
        let _ = crate::template::Template::parse(&text);
    }
}
