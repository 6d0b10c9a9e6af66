//! Reads a `--where` expression:
//!
//! ```text
//! any        = all { ("or" | "||") all }
//! all        = term { ("and" | "&&") term }
//! term       = ("not" | "!") term | "(" any ")" | "is_null" "(" field ")" | comparison
//! comparison = field "is" ["not"] "null" | operand operator operand
//! ```

use super::{
    expression::{Bytes, Comparison, Expression, Literal, Number, decimal},
    grep,
    lexer::{Kind, Mistake, Token, tokens},
};
use crate::grammar;

/// Parentheses and `not` inside of each other, at most: the stack is not endless.
const DEEPEST: usize = 64;

pub(super) fn parse(text: &str) -> Result<Expression, String> {
    read(text).map_err(|mistake| {
        // The text on one line, the place under it.
        let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let before = text.get(..mistake.at).unwrap_or_default().chars().count();
        format!("{}\n  {shown}\n  {:before$}^", mistake.what, "")
    })
}

fn read(text: &str) -> Result<Expression, Mistake> {
    let mut reader = Reader { tokens: tokens(text)?, next: 0, depth: 0 };
    let expression = reader.any()?;
    match reader.peek().kind {
        Kind::End => Ok(expression),
        _ => Err(reader.mistake("expected `and`, `or` or the end")),
    }
}

struct Reader {
    /// Never empty: the last is the end.
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

/// One side of a comparison.
#[derive(Debug)]
enum Operand {
    Number(Number),
    Bytes(Bytes),
    Constant(i64),
    Decimal(f64),
    Time(i64),
    Text(Vec<u8>),
    Null,
}

#[derive(Debug, Clone, Copy)]
enum Operator {
    Compare(Comparison),
    Match { is_negated: bool },
}

const END: Token = Token { kind: Kind::End, at: 0, end: 0, odd_escape: None };

impl Reader {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).or(self.tokens.last()).unwrap_or(&END)
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn mistake(&self, what: impl Into<String>) -> Mistake {
        Mistake { at: self.peek().at, what: what.into() }
    }

    /// Takes the next word if it is this one.
    fn takes(&mut self, word: &str, sign: &str) -> bool {
        let is_it = match &self.peek().kind {
            Kind::Word(found) => found.eq_ignore_ascii_case(word),
            Kind::Sign(found) => !sign.is_empty() && *found == sign,
            _ => false,
        };
        if is_it {
            self.next += 1;
        }
        is_it
    }

    fn any(&mut self) -> Result<Expression, Mistake> {
        let mut terms = vec![self.all()?];
        while self.takes("or", "||") {
            terms.push(self.all()?);
        }
        Ok(one_or(terms, Expression::Any))
    }

    fn all(&mut self) -> Result<Expression, Mistake> {
        let mut terms = vec![self.term()?];
        while self.takes("and", "&&") {
            terms.push(self.term()?);
        }
        Ok(one_or(terms, Expression::All))
    }

    fn term(&mut self) -> Result<Expression, Mistake> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(
                self.mistake(format!("more than {DEEPEST} parentheses and `not` inside of each other"))
            );
        }
        let term = if self.takes("not", "!") {
            Expression::Not(Box::new(self.term()?))
        } else if self.takes("", "(") {
            let inside = self.any()?;
            self.close(")")?;
            inside
        } else if self.takes("is_null", "") {
            if !self.takes("", "(") {
                return Err(self.mistake("expected a field in parentheses, as in is_null(value)"));
            }
            let field = self.bytes_field()?;
            self.close(")")?;
            Expression::IsNull(field)
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(term)
    }

    fn close(&mut self, sign: &str) -> Result<(), Mistake> {
        if self.takes("", sign) { Ok(()) } else { Err(self.mistake(format!("expected `{sign}`"))) }
    }

    fn bytes_field(&mut self) -> Result<Bytes, Mistake> {
        let at = self.peek().at;
        match self.operand()? {
            Operand::Bytes(field) => Ok(field),
            _ => Err(Mistake { at, what: "only topic, key, value and headers.NAME can be null".to_owned() }),
        }
    }

    fn comparison(&mut self) -> Result<Expression, Mistake> {
        let left_at = self.peek().at;
        let left = self.operand()?;
        if self.takes("is", "") {
            let is_negated = self.takes("not", "");
            if !self.takes("null", "") {
                return Err(self.mistake("expected `null` or `not null`"));
            }
            let Operand::Bytes(field) = left else {
                let what = "only topic, key, value and headers.NAME can be null".to_owned();
                return Err(Mistake { at: left_at, what });
            };
            return Ok(negated(is_negated, Expression::IsNull(field)));
        }
        let operator = self.operator()?;
        let right_at = self.peek().at;
        let right = match operator {
            // A regular expression has escapes of its own, and is checked by itself.
            Operator::Match { .. } => self.pattern()?,
            Operator::Compare(_) => self.operand()?,
        };
        compare((left, left_at), operator, (right, right_at))
    }

    fn operator(&mut self) -> Result<Operator, Mistake> {
        let operator = match self.peek().kind {
            Kind::Sign("=" | "==") => Operator::Compare(Comparison::Equal),
            Kind::Sign("!=" | "<>") => Operator::Compare(Comparison::Unequal),
            Kind::Sign("<") => Operator::Compare(Comparison::Less),
            Kind::Sign("<=") => Operator::Compare(Comparison::LessOrEqual),
            Kind::Sign(">") => Operator::Compare(Comparison::Greater),
            Kind::Sign(">=") => Operator::Compare(Comparison::GreaterOrEqual),
            Kind::Sign("=~") => Operator::Match { is_negated: false },
            Kind::Sign("!~") => Operator::Match { is_negated: true },
            _ => return Err(self.mistake("expected an operator: = != < <= > >= =~ !~ or `is null`")),
        };
        self.next += 1;
        Ok(operator)
    }

    fn pattern(&mut self) -> Result<Operand, Mistake> {
        if let Kind::Text(bytes) = &self.peek().kind {
            let pattern = Operand::Text(bytes.clone());
            self.next += 1;
            return Ok(pattern);
        }
        self.operand()
    }

    fn operand(&mut self) -> Result<Operand, Mistake> {
        let token = self.take();
        if let Some(mistake) = token.odd_escape {
            return Err(mistake);
        }
        let wrong = |what: String| Mistake { at: token.at, what };
        match token.kind {
            Kind::Text(bytes) => Ok(Operand::Text(bytes)),
            Kind::Time(time) => grammar::time(&time).map(|at| Operand::Time(at.millis())).map_err(wrong),
            Kind::Word(word) => {
                if word == "headers" || word == "header" {
                    return self.quoted_header();
                }
                if let Some(field) = field(&word) {
                    return Ok(field);
                }
                if let Ok(number) = word.parse() {
                    return Ok(Operand::Constant(number));
                }
                if word.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit()) {
                    if let Some(number) = decimal(&word) {
                        return Ok(Operand::Decimal(number));
                    }
                    let size = grammar::size(&word).ok().and_then(|size| i64::try_from(size).ok());
                    return size.map(Operand::Constant).ok_or_else(|| {
                        wrong(format!("`{word}` is no number; text is written in quotes, times with an @"))
                    });
                }
                Err(wrong(format!(
                    "`{word}` is no field; text is written in quotes. Fields: offset, timestamp, partition, epoch, producer_id, \
                     producer_epoch, size, key_size, value_size, header_count, topic, key, value, headers.NAME"
                )))
            }
            Kind::Sign(_) | Kind::End => {
                Err(wrong("expected a field, a number, 'text' or an @time".to_owned()))
            }
        }
    }

    /// What follows `headers`: `["any name"]`.
    fn quoted_header(&mut self) -> Result<Operand, Mistake> {
        let wrong = "expected a header's name, as in headers.trace or headers[\"trace id\"]";
        if !self.takes("", "[") {
            return Err(self.mistake(wrong));
        }
        let token = self.take();
        if let Some(mistake) = token.odd_escape {
            return Err(mistake);
        }
        let Kind::Text(name) = token.kind else {
            return Err(Mistake { at: token.at, what: wrong.to_owned() });
        };
        self.close("]")?;
        Ok(Operand::Bytes(Bytes::Header(name)))
    }
}

fn one_or(mut terms: Vec<Expression>, many: impl FnOnce(Vec<Expression>) -> Expression) -> Expression {
    match terms.pop() {
        Some(only) if terms.is_empty() => only,
        Some(last) => {
            terms.push(last);
            many(terms)
        }
        None => many(terms),
    }
}

fn negated(is_negated: bool, expression: Expression) -> Expression {
    if is_negated { Expression::Not(Box::new(expression)) } else { expression }
}

fn field(word: &str) -> Option<Operand> {
    if let Some(name) = word.strip_prefix("headers.").or_else(|| word.strip_prefix("header.")) {
        return Some(Operand::Bytes(Bytes::Header(name.as_bytes().to_vec()))).filter(|_| !name.is_empty());
    }
    Some(match word {
        "offset" => Operand::Number(Number::Offset),
        "timestamp" | "time" => Operand::Number(Number::Timestamp),
        "partition" => Operand::Number(Number::Partition),
        "epoch" | "leader_epoch" => Operand::Number(Number::Epoch),
        "producer_id" => Operand::Number(Number::ProducerId),
        "producer_epoch" => Operand::Number(Number::ProducerEpoch),
        "size" => Operand::Number(Number::Size),
        "key_size" => Operand::Number(Number::KeySize),
        "value_size" => Operand::Number(Number::ValueSize),
        "header_count" => Operand::Number(Number::HeaderCount),
        "topic" => Operand::Bytes(Bytes::Topic),
        "key" => Operand::Bytes(Bytes::Key),
        "value" => Operand::Bytes(Bytes::Value),
        "null" => Operand::Null,
        _ => return None,
    })
}

/// Puts a comparison together, the field on whichever side it is.
fn compare(
    left: (Operand, usize),
    operator: Operator,
    right: (Operand, usize),
) -> Result<Expression, Mistake> {
    let is_field = |operand: &Operand| matches!(operand, Operand::Number(_) | Operand::Bytes(_));
    let ((field, field_at), (value, value_at), operator) = match (is_field(&left.0), is_field(&right.0)) {
        (true, false) => (left, right, operator),
        (false, true) => match operator {
            Operator::Compare(comparison) => (right, left, Operator::Compare(comparison.turned())),
            Operator::Match { .. } => {
                return Err(Mistake { at: left.1, what: "the field stands left of =~ and !~".to_owned() });
            }
        },
        (true, true) => {
            return Err(Mistake { at: right.1, what: "two fields cannot be compared".to_owned() });
        }
        (false, false) => return Err(Mistake { at: left.1, what: "there is no field in this".to_owned() }),
    };
    let wrong = |what: &str| Mistake { at: value_at, what: what.to_owned() };
    match (field, operator, value) {
        (Operand::Bytes(field), Operator::Match { is_negated }, Operand::Text(pattern)) => {
            let regex = String::from_utf8(pattern)
                .map_err(|_| wrong("a regular expression is text; a byte is (?s-u:\\\\xff)"))
                .and_then(|pattern| grep::build(&pattern, false).map_err(|e| wrong(&e)))?;
            Ok(negated(is_negated, Expression::Matches(field, regex)))
        }
        (Operand::Number(_), Operator::Match { .. }, _) => {
            Err(Mistake { at: field_at, what: "a number is compared with = != < <= > >=".to_owned() })
        }
        (_, Operator::Match { .. }, _) => Err(wrong("expected a regular expression in quotes")),
        (Operand::Bytes(field), Operator::Compare(comparison), value) => match (value, comparison) {
            (Operand::Null, Comparison::Equal) => Ok(Expression::IsNull(field)),
            (Operand::Null, Comparison::Unequal) => Ok(negated(true, Expression::IsNull(field))),
            (Operand::Null, _) => Err(wrong("null is neither less nor more: write `is null`")),
            (Operand::Text(text), comparison) => Ok(Expression::Text(field, comparison, text)),
            (Operand::Constant(number), comparison) => {
                Ok(Expression::Parsed(field, comparison, Literal::Whole(number)))
            }
            (Operand::Decimal(number), comparison) => {
                Ok(Expression::Parsed(field, comparison, Literal::Decimal(number)))
            }
            _ => Err(wrong("expected 'text', a number or null; times belong to timestamp")),
        },
        (Operand::Number(field), Operator::Compare(comparison), value) => match (field, value) {
            (_, Operand::Constant(number)) => Ok(Expression::Number(field, comparison, number)),
            (Number::Timestamp, Operand::Time(at)) => Ok(Expression::Number(field, comparison, at)),
            (Number::Timestamp, Operand::Text(time)) => {
                let at = grammar::time(&String::from_utf8_lossy(&time)).map_err(|e| wrong(&e))?;
                Ok(Expression::Number(field, comparison, at.millis()))
            }
            (_, Operand::Null) => Err(wrong("this field is never null")),
            (Number::Timestamp, _) => Err(wrong("expected a time, as in @-15m, or milliseconds since 1970")),
            _ => Err(wrong("expected a whole number")),
        },
        _ => Err(wrong("this cannot be compared")),
    }
}

#[cfg(test)]
mod tests;
