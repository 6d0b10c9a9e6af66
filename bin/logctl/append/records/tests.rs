use clap::Parser;

use super::*;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

/// What comes out, however the input is cut into blocks: (key, value) each.
#[expect(clippy::type_complexity, reason = "key and value, each of which may be null")]
fn records(options: &[&str], input: &[u8]) -> Vec<(Option<Vec<u8>>, Option<Vec<u8>>)> {
    let mut outcomes = Vec::new();
    for block in [1, 2, 3, 7, input.len().max(1)] {
        let cli = Cli::try_parse_from([&["append"], options].concat()).unwrap();
        let mut records = Records::new(&cli.args).map_err(|e| e.to_string()).unwrap();
        let mut got = Vec::new();
        let mut push = |(record, _): Placed<'_>, _| {
            got.push((record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec)));
            Ok(())
        };
        for block in input.chunks(block) {
            assert!(records.feed(block, &mut push).is_ok());
        }
        assert!(records.end_of_file(&mut push).is_ok());
        outcomes.push(got);
    }
    outcomes.dedup();
    assert_eq!(outcomes.len(), 1, "it matters how the input was cut");
    outcomes.remove(0)
}

fn values(options: &[&str], input: &[u8]) -> Vec<Vec<u8>> {
    records(options, input).into_iter().map(|(_, value)| value.unwrap()).collect()
}

#[test]
fn lines_keep_every_byte() {
    assert_eq!(values(&[], b""), Vec::<Vec<u8>>::new());
    assert_eq!(values(&[], b"\n"), [b""]);
    assert_eq!(values(&[], b"a\nb"), [b"a", b"b"]);
    assert_eq!(values(&[], b"a\nb\n"), [b"a", b"b"]);
    assert_eq!(values(&[], b"a\r\n\0\xff\n\n"), [&b"a\r"[..], b"\0\xff", b""]);
}

#[test]
fn any_delimiter() {
    assert_eq!(values(&["-D", "\\0"], b"a\nb\0c"), [&b"a\nb"[..], b"c"]);
    assert_eq!(values(&["-D", "\\r\\n"], b"a\rb\r\r\n\nc\r\nd\r"), [&b"a\rb\r"[..], b"\nc", b"d\r"]);
    assert_eq!(values(&["-D", "aab"], b"aaab|aab"), [&b"a"[..], b"|"]);
}

#[test]
fn keys() {
    let pair = |key: Option<&[u8]>, value: &[u8]| (key.map(<[u8]>::to_vec), Some(value.to_vec()));
    assert_eq!(
        records(&["-K", "=", "-k", "fix"], b"a=b=c\nnone\n=v\nk=\n"),
        [pair(Some(b"a"), b"b=c"), pair(Some(b"fix"), b"none"), pair(Some(b""), b"v"), pair(Some(b"k"), b"")]
    );
    assert_eq!(records(&["-K", "::"], b"a::b\n"), [pair(Some(b"a"), b"b")]);
    assert_eq!(records(&["-Z", "-K", "="], b"k=\n"), [(Some(b"k".to_vec()), None)]);
    assert_eq!(records(&["-Z"], b"\nx\n"), [(None, None), pair(None, b"x")]);
}

#[test]
fn raw_is_one_record() {
    assert_eq!(values(&["--format", "raw"], b"a\nb\n"), [b"a\nb\n"]);
    assert_eq!(values(&["--format", "raw"], b""), [b""]);
}

#[test]
fn json_lines_skip_blank_ones() {
    let json = b"{\"key\":\"k\",\"value\":null}\n \n{\"value\":\"/w==\",\"value_encoding\":\"base64\"}";
    assert_eq!(
        records(&["--format", "jsonl"], json),
        [(Some(b"k".to_vec()), None), (None, Some(b"\xff".to_vec()))]
    );
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    for options in [
        &["--max-batch-bytes", "1k", "--batch-size", "1k"][..],
        &["--max-batch-bytes", "1k", "--batch-size", "1k", "-D", "ab"],
    ] {
        let cli = Cli::try_parse_from([&["append"], options].concat()).unwrap();
        let mut records = Records::new(&cli.args).map_err(|e| e.to_string()).unwrap();
        let mut push = |_: Placed<'_>, _| Ok(());
        assert!(records.feed(b"x\nab", &mut push).is_ok());
        let error = (0..100).find_map(|_| records.feed(&[b'y'; 100], &mut push).err()).unwrap();
        assert!(error.to_string().contains("line 2 is longer than 1024 bytes"), "{error}");
        assert!(records.partial.len() < 1200);
    }
}

#[test]
fn rows() {
    let csv = b"key,value\r\na,\"x\n,\"\"y\"\n,\"\"\n\nb,";
    let none: Option<Vec<u8>> = None;
    let some = |bytes: &[u8]| Some(bytes.to_vec());
    assert_eq!(
        records(&["--format", "csv"], csv),
        [(some(b"a"), some(b"x\n,\"y")), (none.clone(), some(b"")), (some(b"b"), none.clone())]
    );
    assert_eq!(
        records(&["--format", "csv", "-k", "fix", "-Z"], csv)[1],
        (some(b"fix"), none),
        "what is missing, and what is empty"
    );
}

#[test]
fn templates() {
    let some = |bytes: &[u8]| Some(bytes.to_vec());
    assert_eq!(
        records(&["-f", "%k: %v\\n", "-Z"], b"a: 1\nb: \nc: 3"),
        [(some(b"a"), some(b"1")), (some(b"b"), None), (some(b"c"), some(b"3"))]
    );
    assert_eq!(values(&["-f", "%V{big16}%v"], b"\0\x02ab\0\x01c"), [&b"ab"[..], b"c"]);
}
