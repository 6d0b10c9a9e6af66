//! Reading the fields of records: every length is held against what is there.

/// Why a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Bytes not yet read.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    pub(super) fn i16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Text with a length of two bytes.
    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        self.nullable_text()?.ok_or(Malformed)
    }

    /// -1 for none.
    pub(super) fn nullable_text(&mut self) -> Result<Option<String>, Malformed> {
        match self.i16()? {
            -1 => Ok(None),
            len => self.text_of(usize::try_from(len).map_err(|_| Malformed)?).map(Some),
        }
    }

    /// Bytes with a length of four bytes.
    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, Malformed> {
        let len = usize::try_from(self.i32()?).map_err(|_| Malformed)?;
        Ok(self.take(len)?.to_vec())
    }

    /// How many elements follow.
    pub(super) fn count(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.i32()?).map_err(|_| Malformed)
    }

    pub(super) fn compact_text(&mut self) -> Result<String, Malformed> {
        self.compact_nullable_text()?.ok_or(Malformed)
    }

    pub(super) fn compact_nullable_text(&mut self) -> Result<Option<String>, Malformed> {
        match self.compact_len()? {
            Some(len) => self.text_of(len).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn compact_bytes(&mut self) -> Result<Vec<u8>, Malformed> {
        let len = self.compact_len()?.ok_or(Malformed)?;
        Ok(self.take(len)?.to_vec())
    }

    pub(super) fn compact_count(&mut self) -> Result<usize, Malformed> {
        self.compact_len()?.ok_or(Malformed)
    }

    /// Steps over tagged fields.
    pub(super) fn tags(&mut self) -> Result<(), Malformed> {
        for _ in 0..self.varint()? {
            self.varint()?;
            let len = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
            self.take(len)?;
        }
        Ok(())
    }

    /// A length, kept with one added; 0 for none.
    fn compact_len(&mut self) -> Result<Option<usize>, Malformed> {
        Ok(usize::try_from(self.varint()?).map_err(|_| Malformed)?.checked_sub(1))
    }

    /// Seven bits a byte, up to 28 bits.
    fn varint(&mut self) -> Result<u32, Malformed> {
        let mut value = 0_u32;
        for shift in [0, 7, 14, 21] {
            let [byte] = self.array()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn text_of(&mut self, len: usize) -> Result<String, Malformed> {
        String::from_utf8(self.take(len)?.to_vec()).map_err(|_| Malformed)
    }
}
