use stratalog::{
    Offset, Timestamp,
    record::{BatchBuilder, BatchOptions, BatchRef, Header, Record, Scratch},
};

use super::Template;
use crate::{
    decode::{Decode, DecodeField, TextStyle},
    target::Target,
    view::{BatchView, Ends, View},
};

/// Prints the record at offset 300 of `data/orders-7` with a template.
fn rendered(template: &str, escape: bool) -> Vec<u8> {
    styled(template, &TextStyle { escape, ..TextStyle::default() })
}

fn styled(template: &str, style: &TextStyle) -> Vec<u8> {
    let template = Template::parse(template).unwrap();
    let headers = [Header { key: "a", value: Some(b"1") }, Header { key: "bc", value: None }];
    let at = Timestamp::from_millis(1_769_761_200_123);
    let record = Record::new().key(b"k\x01").value(b"hi\xff").timestamp(at).headers(&headers);
    let base_offset = Offset::new(300).unwrap();
    let mut builder =
        BatchBuilder::new(BatchOptions { base_offset, leader_epoch: 5, ..BatchOptions::default() });
    builder.push(record).unwrap();
    let batch = BatchRef::parse(builder.finish().unwrap()).unwrap();
    let target = Target::new("data/orders-7".into(), false);
    let mut scratch = Scratch::default();
    let record = batch.records(&mut scratch).unwrap().next().unwrap().unwrap();
    let mut out = Vec::new();
    let mut view = View::new(&target, BatchView::new(&batch), &record);
    view.ends = Ends { start: 3, stable: 400, end: 500 };
    template.render(&view, 4, style, &mut out);
    out
}

fn text(template: &str) -> String {
    String::from_utf8(rendered(template, false)).unwrap()
}

#[test]
fn fields() {
    assert_eq!(text("%t %p %o %e %x %y %i"), "orders 7 300 5 -1 -1 4");
    assert_eq!(text("%T %K %V %S %H"), "6 2 3 3 2");
    assert_eq!(text("%[ %| %] %[{hex} %]{hex16}"), "3 400 500 3 01f4");
    assert_eq!(text("%d"), "1769761200123");
    assert_eq!(rendered("%k=%v|%s\n", false), b"k\x01=hi\xff|hi\xff\n");
}

#[test]
fn text_modifiers() {
    assert_eq!(text("%k{hex} %v{base64} %k{base64} %k{base64raw} %v{base64raw}"), "6b01 aGn/ awE= awE aGn/");
    assert_eq!(text("%t{hex}"), "6f7264657273");
    assert_eq!(rendered("=%k{base64raw}=", false), b"=awE=");
    assert_eq!(text("%k{unpack[c B]} %v{unpack{{>H}}}|%t{unpack##cs##}"), "k 1 26729|orders");
    assert_eq!(text("%k{unpack(>I$)}"), "%!I(have 2 bytes, need 4)");
    assert_eq!(text("%h{%v{unpack[c]}%k{hex};}"), "161;6263;");
}

#[test]
fn number_modifiers() {
    assert_eq!(text("%o{hex} %o{hex64} %o{hex8} %o{hex4} %x{hex16}"), "12c 000000000000012c 2c c ffff");
    assert_eq!(
        rendered("%o{big16}%o{big64}%o{little32}%o{byte}", false),
        b"\x01\x2c\0\0\0\0\0\0\x01\x2c\x2c\x01\0\0\x2c"
    );
    assert_eq!(rendered("%R", false), b"\0\0\0\x03");
    assert_eq!(text("%o{bool} %p{ascii} %p{number}"), "true 7 7");
}

#[test]
fn times() {
    assert_eq!(text("%d{strftime[%F %T]}"), "2026-01-30 08:20:00");
    assert_eq!(text("%d{strftime##[%Y]##}"), "[2026]");
    assert_eq!(text("%d{strftime{{%Y}}}"), "2026");
    assert_eq!(text("%d{hex}"), "19c0dfcd7fb");
    assert_eq!(text("%d{go##2006-01-02T15:04:05.000Z07:00##}"), "2026-01-30T08:20:00.123Z");
    assert_eq!(text("%d{go[Jan _2 3:04PM]}|"), "Jan 30 8:20AM|");
}

#[test]
fn headers() {
    assert_eq!(text("%h{%k=%v;}"), "a=1;bc=;");
    assert_eq!(text("%h{<%K{hex8}:%V%}%{%%>}"), "<01:1}{%><02:0}{%>");
    assert_eq!(text("[%h]"), "[a=1,bc=NULL]");
}

#[test]
fn attributes() {
    assert_eq!(text("%a{compression} %a{compression;number} %a{timestamp-type}"), "none 0 0");
    assert_eq!(text("%a{control-bit;bool} %a{transactional-bit}"), "false 0");
}

#[test]
fn escapes_and_literals() {
    assert_eq!(text("\\t\\n\\\\\\x41 %% %{ %} {x} \u{e9}"), "\t\n\\A % { } {x} \u{e9}");
    assert_eq!(text("%p%{x%}"), "7{x}");
}

#[test]
fn a_terminal_gets_no_control_bytes() {
    assert_eq!(rendered("%k %v", true), b"k\\u{1} hi\\xff");
    assert_eq!(rendered("%V{byte} %o{big16} %k{unpack[cc]}", true), b"\\u{3} \\u{1}, k\\u{1}");
}

#[test]
fn fields_as_they_are_decoded() {
    let fields = ["key=>H", "value=hex", "header=u8"].map(|field| DecodeField::parse(field).unwrap());
    let style = TextStyle { null: b"NULL", decode: Decode::of(&fields).unwrap(), ..TextStyle::default() };
    let text = String::from_utf8(styled("%k %v %v{base64} %h{%k=%v,}%h", &style)).unwrap();
    assert_eq!(text, "27393 6869ff aGn/ a=49,bc=NULL,a=49,bc=NULL");
}

#[test]
fn mistakes_are_told_before_anything_is_printed() {
    for template in [
        "%",
        "%z",
        "%o{hex",
        "%o{huge}",
        "%k{big32}",
        "%d{go}",
        "%d{go[2006}",
        "%d{go[2006]",
        "%k{unpack[z]}",
        "%k{unpack[]}",
        "%k{unpack}",
        "%k{unpack[s}",
        "%p{unpack[s]}",
        "%d{strftime}",
        "%d{strftime[%F}",
        "%d{strftime[%!]}",
        "%h{%k",
        "%h{%o}",
        "%a",
        "%a{x}",
        "%a{compression;x}",
        "\\q",
        "\\x4",
        "tail\\",
    ] {
        assert!(Template::parse(template).is_err(), "{template}");
    }
}
