//! Messages of random content, written straight from Kafka's layouts: no code of ours decides what they look like.

use crate::layout::{Layout, Node};

/// Structs that may be null, which the layouts do not say. A byte stands before them.
const NULLABLE_STRUCTS: &[(i16, &str)] = &[(68, "assignment"), (75, "cursor"), (75, "next_cursor")];

/// splitmix64
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

/// How lengths are written, and what is known of the place.
struct Maker<'r> {
    random: &'r mut Random,
    key: i16,
    bytes: Vec<u8>,
    /// Within a tagged field nothing may have its default, or a codec rightly leaves the field out.
    telling: bool,
}

/// The body of a message as the layout says, in its canonical encoding.
pub(crate) fn body(layout: &Layout, random: &mut Random) -> Vec<u8> {
    let mut maker = Maker { random, key: layout.key, bytes: Vec::new(), telling: false };
    maker.fields(&layout.fields);
    maker.bytes
}

impl Maker<'_> {
    fn fields(&mut self, fields: &Node) {
        for (name, kind) in fields.entries() {
            if name == "tagged" {
                self.tagged(kind);
            } else {
                self.value(name, kind);
            }
        }
    }

    fn tagged(&mut self, tags: &Node) {
        let chosen = tags.entries().iter().filter(|_| self.random.one_in(2)).collect::<Vec<_>>();
        self.varint(chosen.len());
        for (tag, field) in chosen {
            self.varint(tag.parse().unwrap());
            let mut inner = Maker { random: self.random, key: self.key, bytes: Vec::new(), telling: true };
            let [(name, kind)] = field.entries() else { panic!("one field a tag: {field:?}") };
            inner.value(name, kind);
            let inner = inner.bytes;
            self.varint(inner.len());
            self.bytes.extend(inner);
        }
    }

    fn value(&mut self, name: &str, kind: &Node) {
        match kind {
            Node::Map(_) => {
                if NULLABLE_STRUCTS.contains(&(self.key, name)) {
                    if self.random.one_in(3) {
                        self.bytes.push(0xFF);
                        return;
                    }
                    self.bytes.push(1);
                }
                self.fields(kind);
            }
            Node::List(parts) => {
                let [element, array] = parts.as_slice() else { panic!("an array: {kind:?}") };
                let compact = array.text().starts_with("COMPACT_");
                if array.text().ends_with(" nullable") && !self.telling && self.random.one_in(4) {
                    self.length(None, compact, true);
                    return;
                }
                let count = usize::from(self.telling) + self.random.below(3);
                self.length(Some(count), compact, true);
                for _ in 0..count {
                    self.value(name, element);
                }
            }
            Node::Text(kind) => self.plain(kind),
            Node::Number(_) => panic!("a type: {kind:?}"),
        }
    }

    fn plain(&mut self, kind: &str) {
        let (compact, kind) = kind.strip_prefix("COMPACT_").map_or((false, kind), |kind| (true, kind));
        let (nullable, kind) = kind.strip_prefix("NULLABLE_").map_or((false, kind), |kind| (true, kind));
        match kind {
            "BOOLEAN" => {
                let value = self.telling || self.random.one_in(2);
                self.bytes.push(u8::from(value));
            }
            "INT8" => self.integer(1),
            "INT16" | "UINT16" => self.integer(2),
            "INT32" => self.integer(4),
            "INT64" | "FLOAT64" => self.integer(8),
            "UUID" => self.integer(16),
            "STRING" | "BYTES" | "RECORDS" => {
                let wide = kind != "STRING";
                if nullable && !self.telling && self.random.one_in(4) {
                    self.length(None, compact, wide);
                    return;
                }
                // Now and then longer than one byte of a varint can say.
                let most = if self.random.one_in(8) { 300 } else { 12 };
                let count = usize::from(self.telling) + self.random.below(most);
                let content = if wide {
                    self.random.bytes(count)
                } else {
                    let letters = ["a", "Z", "9", ".", "\u{e9}", "\u{1F980}", "\"", "\\"];
                    let text = (0..count).map(|_| letters[self.random.below(letters.len())]);
                    text.collect::<String>().into_bytes()
                };
                self.length(Some(content.len()), compact, wide);
                self.bytes.extend(content);
            }
            other => panic!("type {other}"),
        }
    }

    /// Often an end of its range or next to it.
    fn integer(&mut self, width: usize) {
        let choice = if self.telling { 4 } else { self.random.below(8) };
        match choice {
            0 => self.bytes.extend(vec![0; width]),
            1 => self.bytes.extend(vec![0xFF; width]),
            2 => self.bytes.extend([0x80, 0xFF].iter().chain(&[0; 16]).take(width)),
            3 => self.bytes.extend([0x7F].iter().chain(&[0xFF; 16]).take(width)),
            _ => {
                let mut value = self.random.bytes(width);
                if let Some(first) = value.first_mut() {
                    // Neither 0 nor -1 nor the largest, the defaults of tagged fields.
                    *first = 0x21;
                }
                self.bytes.extend(value);
            }
        }
    }

    fn length(&mut self, length: Option<usize>, compact: bool, wide: bool) {
        if compact {
            self.varint(length.map_or(0, |length| length + 1));
        } else if wide {
            let length = length.map_or(-1, |length| i32::try_from(length).unwrap());
            self.bytes.extend(length.to_be_bytes());
        } else {
            let length = length.map_or(-1, |length| i16::try_from(length).unwrap());
            self.bytes.extend(length.to_be_bytes());
        }
    }

    fn varint(&mut self, mut value: usize) {
        loop {
            let low = u8::try_from(value & 0x7F).unwrap();
            value >>= 7;
            if value == 0 {
                self.bytes.push(low);
                return;
            }
            self.bytes.push(low | 0x80);
        }
    }
}
