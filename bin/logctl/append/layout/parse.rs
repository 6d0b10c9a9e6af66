//! Reads a template.

use super::{Encoding, Extent, Field, NumberForm, Pattern, Step, Target};
use crate::{grammar::escape, template::between};

/// What was said of a field so far.
#[derive(Default)]
struct Said {
    fields: Vec<Field>,
    sizes: Vec<Field>,
    numbers: Vec<char>,
    headers_counted: bool,
    headers: bool,
}

pub(super) fn parse(text: &str) -> Result<Vec<Step>, String> {
    let mut reader = Reader { rest: text, steps: Vec::new(), literal: Vec::new(), said: Said::default() };
    reader.read(false)?;
    if !reader
        .steps
        .iter()
        .any(|step| matches!(step, Step::Text(Field::Key | Field::Value, ..) | Step::Headers(_)))
    {
        return Err("it reads no key and no value: write %v, %k or %h{..}".to_owned());
    }
    if !reader.steps.iter().any(takes_bytes) {
        return Err("it takes nothing from the input".to_owned());
    }
    Ok(reader.steps)
}

/// False where nothing may be read at all, whatever comes.
fn takes_bytes(step: &Step) -> bool {
    !matches!(step, Step::Number(NumberForm::Always(_), _))
}

struct Reader<'t> {
    rest: &'t str,
    steps: Vec<Step>,
    /// Text that was read and is no step yet.
    literal: Vec<u8>,
    said: Said,
}

impl Reader<'_> {
    /// Up to the end, or to the brace that ends a specification of headers.
    fn read(&mut self, is_inner: bool) -> Result<(), String> {
        loop {
            let mut letters = self.rest.chars();
            let Some(letter) = letters.next() else {
                if is_inner {
                    return Err("`%h{` is not closed by a `}`".to_owned());
                }
                break;
            };
            let tail = letters.as_str();
            match (letter, letters.next()) {
                ('}', _) if is_inner => {
                    self.rest = tail;
                    break;
                }
                ('\\', _) => {
                    let (byte, used) = escape(tail.as_bytes())?;
                    self.literal.push(byte);
                    self.rest = tail.get(used..).unwrap_or_default();
                }
                ('%', Some(sign @ ('%' | '{' | '}'))) => {
                    self.literal.extend(sign.to_string().as_bytes());
                    self.rest = letters.as_str();
                }
                ('%', Some(verb)) => {
                    self.rest = letters.as_str();
                    self.end_literal()?;
                    self.verb(verb, is_inner)?;
                }
                ('%', None) => return Err("a single `%` at the end: write `%%`".to_owned()),
                (letter, _) => {
                    self.literal.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                    self.rest = tail;
                }
            }
        }
        let is_open =
            self.literal.is_empty() && matches!(self.steps.last(), Some(Step::Text(_, Extent::Rest, _)));
        if is_open && is_inner {
            return Err("what ends the last field of a header? write text behind it, or its size before it"
                .to_owned());
        }
        if !is_open {
            self.end_literal()?;
        }
        for size in &self.said.sizes {
            if !self.said.fields.contains(size) {
                return Err(format!(
                    "`%{}` is the size of nothing: `%{}` is missing",
                    size.size(),
                    size.letter()
                ));
            }
        }
        if self.said.headers_counted && !self.said.headers {
            return Err("`%H` counts headers, but `%h{..}` is missing".to_owned());
        }
        Ok(())
    }

    /// The text so far ends the field before it, or stands by itself.
    fn end_literal(&mut self) -> Result<(), String> {
        let literal = std::mem::take(&mut self.literal);
        if let Some(Step::Text(field, extent @ Extent::Rest, _)) = self.steps.last_mut() {
            if literal.is_empty() {
                let (letter, size) = (field.letter(), field.size());
                return Err(format!(
                    "what ends `%{letter}`? write text behind it, its size `%{size}` before it, or %{letter}{{re[..]}}"
                ));
            }
            *extent = Extent::Delimited(literal);
        } else if !literal.is_empty() {
            self.steps.push(Step::Exact(literal));
        }
        Ok(())
    }

    fn verb(&mut self, verb: char, is_inner: bool) -> Result<(), String> {
        let field = match verb {
            't' | 'T' => Some(Field::Topic),
            'k' | 'K' => Some(Field::Key),
            'v' | 'V' => Some(Field::Value),
            _ => None,
        };
        if is_inner && !matches!(verb, 'k' | 'K' | 'v' | 'V') {
            return Err("inside of `%h{..}` there are %k, %v, %K, %V, %%, %{ and %}".to_owned());
        }
        match (verb, field) {
            ('T' | 'K' | 'V', Some(field)) => {
                if self.said.fields.contains(&field) {
                    return Err(format!(
                        "`%{verb}` must come before `%{}`, whose size it is",
                        field.letter()
                    ));
                }
                if self.said.sizes.contains(&field) {
                    return Err(format!("`%{verb}` is there twice"));
                }
                self.said.sizes.push(field);
                self.number(verb, Target::Size(field))
            }
            (_, Some(field)) => self.text(verb, field),
            ('H', _) => {
                if std::mem::replace(&mut self.said.headers_counted, true) {
                    return Err("`%H` is there twice".to_owned());
                }
                self.number(verb, Target::HeaderCount)
            }
            ('h', _) => self.headers(),
            ('d' | 'o' | 'p' | 'e' | 'x' | 'y', _) => {
                if self.said.numbers.contains(&verb) {
                    return Err(format!("`%{verb}` is there twice"));
                }
                self.said.numbers.push(verb);
                let target = match verb {
                    'd' => Target::Timestamp,
                    'o' => Target::Offset,
                    _ => Target::Unused,
                };
                self.number(verb, target)
            }
            ('i' | 'a' | '[' | '|' | ']' | 's' | 'S' | 'R', _) => {
                Err(format!("`%{verb}` prints, and cannot be read"))
            }
            (other, _) => Err(format!(
                "unknown `%{}`: use %k key, %v value, %K %V their sizes, %H count and %h{{..}} of headers, %d timestamp, %o offset, \
                 %t %T %p %e %x %y, %% a percent sign",
                other.escape_default()
            )),
        }
    }

    fn number(&mut self, verb: char, target: Target) -> Result<(), String> {
        let form = match self.rest.strip_prefix('{') {
            None => NumberForm::Decimal,
            Some(inside) => {
                let (name, rest) =
                    inside.split_once('}').ok_or_else(|| format!("`%{verb}{{` is not closed by a `}}`"))?;
                self.rest = rest;
                NumberForm::named(name).ok_or_else(|| {
                    let times = if verb == 'd' { "; times are read as milliseconds only" } else { "" };
                    format!(
                        "unknown `%{verb}{{{name}}}`: use ascii, hex4 to hex64, big8 to big64, little8 to little64, byte, bool, or a \
                         number of its own{times}"
                    )
                })?
            }
        };
        self.steps.push(Step::Number(form, target));
        Ok(())
    }

    fn text(&mut self, verb: char, field: Field) -> Result<(), String> {
        if self.said.fields.contains(&field) {
            return Err(format!("`%{verb}` is there twice"));
        }
        self.said.fields.push(field);
        let is_sized = self.said.sizes.contains(&field);
        let mut extent = if is_sized { Extent::Sized } else { Extent::Rest };
        let mut encoding = Encoding::Plain;
        if let Some(inside) = self.rest.strip_prefix('{') {
            if let Some(quoted) = inside.strip_prefix("re") {
                let (pattern, rest) = between(quoted).ok_or_else(|| {
                    format!("`%{verb}{{re` wants its expression in brackets: %{verb}{{re[\\\\d*]}}")
                })?;
                if is_sized {
                    return Err(format!("`%{verb}` has a size and cannot have an expression too"));
                }
                extent = Extent::Matched(Box::new(Pattern::new(pattern)?));
                self.rest = rest;
            } else {
                let (name, rest) =
                    inside.split_once('}').ok_or_else(|| format!("`%{verb}{{` is not closed by a `}}`"))?;
                encoding = match name {
                    "hex" => Encoding::Hex,
                    "base64" | "base64raw" => Encoding::Base64,
                    "json" => Encoding::Json,
                    other => {
                        return Err(format!(
                            "unknown `%{verb}{{{other}}}`: use hex, base64, base64raw, json or re[..]"
                        ));
                    }
                };
                if encoding == Encoding::Json && !is_sized {
                    extent = Extent::Json;
                }
                self.rest = rest;
            }
        }
        self.steps.push(Step::Text(field, extent, encoding));
        Ok(())
    }

    fn headers(&mut self) -> Result<(), String> {
        let Some(inside) = self.rest.strip_prefix('{') else {
            return Err("`%h` wants to know how headers are written: %h{%k=%v,}".to_owned());
        };
        if !self.said.headers_counted {
            return Err("`%H`, the number of headers, must come before `%h{..}`".to_owned());
        }
        if std::mem::replace(&mut self.said.headers, true) {
            return Err("`%h{..}` is there twice".to_owned());
        }
        let mut inner =
            Reader { rest: inside, steps: Vec::new(), literal: Vec::new(), said: Said::default() };
        inner.read(true)?;
        if !inner.said.fields.contains(&Field::Key) {
            return Err("a header has a name: `%k` is missing inside of `%h{..}`".to_owned());
        }
        self.rest = inner.rest;
        self.steps.push(Step::Headers(inner.steps));
        Ok(())
    }
}

impl Field {
    pub(super) fn letter(self) -> char {
        match self {
            Self::Topic => 't',
            Self::Key => 'k',
            Self::Value => 'v',
        }
    }

    fn size(self) -> char {
        self.letter().to_ascii_uppercase()
    }
}

impl NumberForm {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "ascii" | "number" => Self::Decimal,
            "hex64" => Self::HexDigits(16),
            "hex32" => Self::HexDigits(8),
            "hex16" => Self::HexDigits(4),
            "hex8" => Self::HexDigits(2),
            "hex4" => Self::HexDigits(1),
            "big64" => Self::BigEndian(8),
            "big32" => Self::BigEndian(4),
            "big16" => Self::BigEndian(2),
            "little64" => Self::LittleEndian(8),
            "little32" => Self::LittleEndian(4),
            "little16" => Self::LittleEndian(2),
            "big8" | "little8" | "byte" => Self::BigEndian(1),
            "bool" => Self::Bool,
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
                Self::Always(digits.parse().ok().filter(|number| *number > 0)?)
            }
            _ => return None,
        })
    }
}
