//! JSON read in place: tokens are found and checked, nothing is built.
//!
//! Requests are small and many, and all that is wanted of one is where its members lie. A parser that
//! builds values would allocate for every one of them.

use std::borrow::Cow;

/// Values inside values at the most.
pub(crate) const DEPTH_MAX: usize = 64;

/// Not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotJson {
    /// The byte where it stops being JSON.
    pub(crate) offset: usize,
}

/// One value, checked, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    text: &'a str,
    /// Of a string: whether it has escapes.
    is_escaped: bool,
}

impl<'a> Token<'a> {
    /// The value as it was written.
    pub(crate) fn text(self) -> &'a str {
        self.text
    }

    /// The first byte tells what it is.
    pub(crate) fn kind(self) -> TokenKind {
        match self.text.as_bytes().first() {
            Some(b'{') => TokenKind::Object,
            Some(b'[') => TokenKind::Array,
            Some(b'"') => TokenKind::String,
            Some(b't' | b'f') => TokenKind::Bool,
            Some(b'n') | None => TokenKind::Null,
            Some(_) => TokenKind::Number,
        }
    }

    /// The content of a string, its escapes undone. `None` if it is no string, or if an escape stands
    /// for no character.
    pub(crate) fn string(self) -> Option<Cow<'a, str>> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        if self.is_escaped { unescape(inner).map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
    }

    /// The values of an array; none if it is no array.
    pub(crate) fn items(self) -> Items<'a> {
        Items { scanner: Scanner::inside(inside(self, TokenKind::Array)) }
    }

    /// The members of an object; none if it is no object.
    pub(crate) fn members(self) -> Members<'a> {
        Members { scanner: Scanner::inside(inside(self, TokenKind::Object)) }
    }
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

/// What lies between the brackets.
fn inside(token: Token<'_>, kind: TokenKind) -> &str {
    let end = token.text.len().saturating_sub(1);
    token.text.get(1..end).filter(|_| token.kind() == kind).unwrap_or_default()
}

/// How many bytes from the front may stand in a string as they are.
fn plain_length(bytes: &[u8]) -> usize {
    // Eight bytes are looked at together, up to the first that may not.
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            let before = usize::try_from(special.trailing_zeros() / 8).unwrap_or_default();
            return index.saturating_mul(8).saturating_add(before);
        }
    }
    let is_plain = |byte: &&u8| **byte >= 0x20 && **byte != b'"' && **byte != b'\\';
    words.len().saturating_mul(8).saturating_add(rest.iter().take_while(is_plain).count())
}

/// The high bits of bytes that may not stand in a string as they are. The lowest that is set is
/// right; above it, a borrow may have set more.
fn special_bytes(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let is_below = |word: u64, least: u8| {
        word.wrapping_sub(EACH.wrapping_mul(least.into())) & !word & EACH.wrapping_mul(0x80)
    };
    let is = |byte: u8| is_below(word ^ EACH.wrapping_mul(byte.into()), 1);
    is_below(word, 0x20) | is(b'"') | is(b'\\')
}

/// Something directly inside the outermost value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScanEvent<'a> {
    /// Of an object.
    Member(Token<'a>, Token<'a>),
    /// Of an array.
    Item,
}

/// Checks a whole text: one value, and blanks around it. What it holds is told on the way, even if
/// the text turns out to be no JSON further on.
pub(crate) fn scan<'a>(
    text: &'a str,
    mut told: impl FnMut(ScanEvent<'a>),
) -> Result<Token<'a>, NotJson> {
    let mut scanner = Scanner { text, at: 0, depth_max: DEPTH_MAX };
    scanner.blanks();
    let begin = scanner.at;
    let token = match scanner.peek() {
        Some(b'{') => {
            scanner.object(0, |key, value| told(ScanEvent::Member(key, value)))?;
            scanner.since(begin)
        }
        Some(b'[') => {
            scanner.array(0, || told(ScanEvent::Item))?;
            scanner.since(begin)
        }
        _ => scanner.value(0)?,
    };
    scanner.end()?;
    Ok(token)
}

/// Checks a whole text with another limit on values inside values.
pub(crate) fn scan_deep(text: &str, depth_max: usize) -> Result<Token<'_>, NotJson> {
    let mut scanner = Scanner { text, at: 0, depth_max };
    let token = scanner.value(0)?;
    scanner.end()?;
    Ok(token)
}

/// The values of a checked array.
#[derive(Clone, Debug)]
pub(crate) struct Items<'a> {
    scanner: Scanner<'a>,
}

impl<'a> Iterator for Items<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.scanner.blanks();
        let token = self.scanner.value(0).ok()?;
        self.scanner.blanks();
        self.scanner.take(b',');
        Some(token)
    }
}

/// The members of a checked object.
#[derive(Clone, Debug)]
pub(crate) struct Members<'a> {
    scanner: Scanner<'a>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Token<'a>, Token<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.scanner.blanks();
        let key = self.scanner.value(0).ok()?;
        self.scanner.blanks();
        self.scanner.take(b':');
        let value = self.scanner.value(0).ok()?;
        self.scanner.blanks();
        self.scanner.take(b',');
        Some((key, value))
    }
}

#[derive(Clone, Debug)]
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth_max: usize,
}

impl<'a> Scanner<'a> {
    /// Over the inside of a value that was checked, and so is no deeper than it may be.
    fn inside(text: &'a str) -> Self {
        Self { text, at: 0, depth_max: usize::MAX }
    }

    fn fault(&self) -> NotJson {
        NotJson { offset: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        if is_there {
            self.skip();
        }
        is_there
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.take(byte) { Ok(()) } else { Err(self.fault()) }
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.skip();
        }
    }

    /// What was read since then.
    fn since(&self, begin: usize) -> Token<'a> {
        Token { text: self.text.get(begin..self.at).unwrap_or_default(), is_escaped: false }
    }

    /// Nothing but blanks may be left.
    fn end(&mut self) -> Result<(), NotJson> {
        self.blanks();
        if self.at == self.text.len() { Ok(()) } else { Err(self.fault()) }
    }

    fn value(&mut self, depth: usize) -> Result<Token<'a>, NotJson> {
        self.blanks();
        let begin = self.at;
        match self.peek() {
            Some(b'{') => self.object(depth, |_, _| {})?,
            Some(b'[') => self.array(depth, || {})?,
            Some(b'"') => return self.string(),
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => return Err(self.fault()),
        }
        Ok(self.since(begin))
    }

    fn deeper(&self, depth: usize) -> Result<usize, NotJson> {
        if depth < self.depth_max { Ok(depth.saturating_add(1)) } else { Err(self.fault()) }
    }

    fn object(
        &mut self,
        depth: usize,
        mut member: impl FnMut(Token<'a>, Token<'a>),
    ) -> Result<(), NotJson> {
        let depth = self.deeper(depth)?;
        self.expect(b'{')?;
        self.blanks();
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.blanks();
            let key = self.string()?;
            self.blanks();
            self.expect(b':')?;
            member(key, self.value(depth)?);
            self.blanks();
            if !self.take(b',') {
                return self.expect(b'}');
            }
        }
    }

    fn array(&mut self, depth: usize, mut item: impl FnMut()) -> Result<(), NotJson> {
        let depth = self.deeper(depth)?;
        self.expect(b'[')?;
        self.blanks();
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.value(depth)?;
            item();
            self.blanks();
            if !self.take(b',') {
                return self.expect(b']');
            }
        }
    }

    fn string(&mut self) -> Result<Token<'a>, NotJson> {
        let begin = self.at;
        self.expect(b'"')?;
        let mut is_escaped = false;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            self.at = self.at.saturating_add(plain_length(rest));
            match self.peek() {
                Some(b'"') => {
                    self.skip();
                    return Ok(Token { is_escaped, ..self.since(begin) });
                }
                Some(b'\\') => {
                    is_escaped = true;
                    self.skip();
                    self.escape()?;
                }
                _ => return Err(self.fault()),
            }
        }
    }

    fn escape(&mut self) -> Result<(), NotJson> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.skip();
                Ok(())
            }
            Some(b'u') => {
                self.skip();
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.fault());
                    }
                    self.skip();
                }
                Ok(())
            }
            _ => Err(self.fault()),
        }
    }

    fn number(&mut self) -> Result<(), NotJson> {
        self.take(b'-');
        // No digit may follow a leading zero.
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let begin = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.skip();
        }
        if self.at > begin { Ok(()) } else { Err(self.fault()) }
    }

    fn word(&mut self, word: &str) -> Result<(), NotJson> {
        let end = self.at.saturating_add(word.len());
        if self.text.get(self.at..end) != Some(word) {
            return Err(self.fault());
        }
        self.at = end;
        Ok(())
    }
}

/// Undoes the escapes of a checked string; `None` if one stands for half a character.
fn unescape(inner: &str) -> Option<String> {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut letters = after.chars();
        let letter = letters.next()?;
        rest = letters.as_str();
        out.push(match letter {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (unit, after) = code_unit(rest)?;
                let (character, after) = match unit {
                    0xd800..=0xdbff => {
                        let (low, after) = code_unit(after.strip_prefix("\\u")?)?;
                        let pair = char::decode_utf16([unit, low]).next()?.ok()?;
                        (pair, after)
                    }
                    unit => (char::from_u32(unit.into())?, after),
                };
                rest = after;
                character
            }
            other => other,
        });
    }
    out.push_str(rest);
    Some(out)
}

fn code_unit(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((u16::from_str_radix(digits, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> Result<Token<'_>, NotJson> {
        super::scan(text, |_| {})
    }

    #[test]
    fn what_serde_json_takes_is_taken_and_nothing_else() {
        let texts = [
            "0",
            "-0",
            "-1.5e+10",
            "1e5",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "--1",
            "true",
            "tru",
            "null",
            "nul",
            "\"\"",
            "\"a\\u00e9\\n\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"a",
            "\"\t\"",
            "[]",
            "[1]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{}",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\" 1}",
            "{\"a\"}",
            "[{\"b\":[null,true]}]",
            " [ 1 , 2 ] ",
            "",
            " ",
            "[",
            "]",
            "{",
            "}",
            "1 1",
            "nullx",
            "\u{feff}1",
            "[1]x",
            "{\"a\":{\"b\":[]}}",
            "\"\\\"\"",
            "\"\\\\\"",
            "\"\\\"",
        ];
        for text in texts {
            let expected = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(scan(text).is_ok(), expected, "{text:?}");
            assert_eq!(scan_deep(text, DEPTH_MAX), scan(text), "{text:?}");
        }
    }

    #[test]
    fn a_byte_that_ends_or_escapes_is_seen_wherever_it_stands() {
        for special in ["\"", "\\", "\\n", "\t", "\u{1f}", "\u{20}", "\u{e9}", "\u{7f}"] {
            for before in 0..40 {
                for after in [0, 1, 20] {
                    let text = format!("\"{}{special}{}\"", "a".repeat(before), "n".repeat(after));
                    let expected = serde_json::from_str::<String>(&text).ok();
                    let found = scan(&text).ok().and_then(Token::string);
                    assert_eq!(found.as_deref(), expected.as_deref(), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn values_too_deep_are_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(scan(&nested(DEPTH_MAX)).is_ok());
        assert!(scan(&nested(DEPTH_MAX + 1)).is_err());
        assert!(scan(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn items_and_members_come_in_order() {
        let token = scan(" [ 1, \"a,b\" ,{\"x\":[2]} , [] ] ").unwrap();
        let items: Vec<&str> = token.items().map(Token::text).collect();
        assert_eq!(items, ["1", "\"a,b\"", "{\"x\":[2]}", "[]"]);
        let token = scan("{\"a\" : 1,\"b\":{\"c\":2} }").unwrap();
        let members: Vec<_> =
            token.members().map(|(key, value)| (key.text(), value.text())).collect();
        assert_eq!(members, [("\"a\"", "1"), ("\"b\"", "{\"c\":2}")]);
        assert_eq!(scan("[]").unwrap().items().count(), 0);
        assert_eq!(scan("{}").unwrap().members().count(), 0);
        assert_eq!(scan("3").unwrap().items().count(), 0);
    }

    #[test]
    fn what_the_outermost_value_holds_is_told_while_it_is_checked() {
        let told = |text: &str| {
            let mut parts = Vec::new();
            super::scan(text, |part| {
                parts.push(match part {
                    ScanEvent::Member(key, value) => format!("{}={}", key.text(), value.text()),
                    ScanEvent::Item => "item".to_owned(),
                });
            })
            .unwrap();
            parts
        };
        assert_eq!(told(" {\"a\" : {\"b\":1}, \"c\":[2]}"), ["\"a\"={\"b\":1}", "\"c\"=[2]"]);
        assert_eq!(told("[ [1,2], {\"a\":1} ,3]"), ["item"; 3]);
        for empty in ["{}", "[]", "1", "\"a\""] {
            assert!(told(empty).is_empty(), "{empty}");
        }
    }

    #[test]
    fn escapes_are_undone() {
        let string = |text: &str| scan(text).unwrap().string().map(Cow::into_owned);
        assert_eq!(string("\"plain\"").as_deref(), Some("plain"));
        assert_eq!(string(r#""a\u0062\n\/\"""#).as_deref(), Some("ab\n/\""));
        assert_eq!(string(r#""\ud83d\ude00""#).as_deref(), Some("\u{1f600}"));
        assert_eq!(string(r#""\ud83d""#), None);
        assert_eq!(string(r#""\udc00""#), None);
        assert_eq!(string("1"), None);
    }
}
