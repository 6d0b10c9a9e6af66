//! Frames: four bytes of length, then a header and one message.
//!
//! ```text
//! request   length i32 | api key i16 | version i16 | correlation id i32 | client id, two-byte length | [tags] | fields
//! response  length i32 | correlation id i32 | [tags] | fields
//! ```
//!
//! The tags are there in flexible versions; never in the response to `ApiVersions`, which a client must be able to read
//! before it knows what the broker speaks.

use super::{
    ApiKey, DecodeError, EncodeError, EncodeFault, Request, Response,
    wire::{self, Form, Reader, Wire, Writer},
};

/// The bytes of a frame's length.
pub const FRAME_LENGTH_BYTES: usize = 4;

/// What the elements of a response may take in memory, in lengths of its frame.
const RESPONSE_ELEMENTS: usize = 8;

/// The length prefix of a frame that will not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFault {
    /// The first bytes of a TLS handshake.
    Tls,
    /// The first bytes of an HTTP request.
    Http,
    /// Less than 0.
    Negative(i32),
    /// More than allowed.
    TooLarge {
        /// The length.
        length: u32,
        /// The largest allowed.
        limit: u32,
    },
}

impl std::fmt::Display for FrameFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tls => write!(f, "a TLS handshake, where plain Kafka is spoken"),
            Self::Http => write!(f, "an HTTP request, where Kafka is spoken"),
            Self::Negative(length) => write!(f, "frame length {length}"),
            Self::TooLarge { length, limit } => write!(f, "frame of {length} bytes, {limit} are allowed"),
        }
    }
}

impl std::error::Error for FrameFault {}

/// The number of bytes that follow the length prefix `bytes`, at most `limit`.
pub fn frame_length(bytes: [u8; FRAME_LENGTH_BYTES], limit: u32) -> Result<u32, FrameFault> {
    let signed = i32::from_be_bytes(bytes);
    let Ok(length) = u32::try_from(signed) else { return Err(FrameFault::Negative(signed)) };
    if length <= limit {
        return Ok(length);
    }
    // Both begin with bytes that are a length far beyond any limit in use.
    match &bytes {
        [0x16, 3, ..] => Err(FrameFault::Tls),
        b"GET " | b"POST" | b"PUT " | b"HEAD" | b"DELE" | b"OPTI" | b"CONN" | b"PATC" | b"TRAC" | b"PRI " => {
            Err(FrameFault::Http)
        }
        _ => Err(FrameFault::TooLarge { length, limit }),
    }
}

/// What stands before every request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// Which API is asked; [`RequestHeader::api`] if it is one that is declared here.
    pub api_key: i16,
    /// The version of that API.
    pub api_version: i16,
    /// Comes back in the response.
    pub correlation_id: i32,
    /// What the client calls itself.
    pub client_id: Option<&'a str>,
}

impl RequestHeader<'_> {
    /// The API, if it is declared here.
    pub fn api(&self) -> Option<ApiKey> {
        ApiKey::from_key(self.api_key)
    }
}

/// What stands before every response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseHeader {
    /// That of the request.
    pub correlation_id: i32,
}

/// Text in headers has a two-byte length in every version.
const HEADER_FORM: Form = Form { version: 0, flexible: false, nullable: true };

/// Reads a request's header off `frame`, the bytes after the length prefix.
///
/// Of an API that is not declared here nobody knows whether tags follow: the reader then stands after the client id.
pub fn read_request_header(frame: &[u8]) -> Result<(RequestHeader<'_>, Reader<'_>), DecodeError> {
    let mut reader = Reader::new(frame);
    let header = read_header(&mut reader).map_err(|error| error.in_field("RequestHeader"))?;
    Ok((header, reader))
}

fn read_header<'a>(reader: &mut Reader<'a>) -> Result<RequestHeader<'a>, DecodeError> {
    let api_key = i16::from_be_bytes(reader.array()?);
    let api_version = i16::from_be_bytes(reader.array()?);
    let correlation_id = i32::from_be_bytes(reader.array()?);
    let version = ApiKey::from_key(api_key).map_or(1, |api| api.request_header_version(api_version));
    let client_id = if version == 0 { None } else { Wire::decode_in(reader, HEADER_FORM)? };
    if version >= 2 {
        reader.skip_tags()?;
    }
    Ok(RequestHeader { api_key, api_version, correlation_id, client_id })
}

/// Reads a response's header off `frame`, the bytes after the length prefix. `version` is that of the request.
pub fn read_response_header(
    frame: &[u8],
    api: ApiKey,
    version: i16,
) -> Result<(ResponseHeader, Reader<'_>), DecodeError> {
    // Who asked for it knows what is coming, and it is made of small elements by nature.
    let room_bytes = wire::ELEMENTS_BYTES.saturating_add(frame.len().saturating_mul(RESPONSE_ELEMENTS));
    let mut reader = Reader::new(frame).with_room(room_bytes);
    let mut read = || {
        let correlation_id = i32::from_be_bytes(reader.array()?);
        if api.response_header_version(version) >= 1 {
            reader.skip_tags()?;
        }
        Ok(ResponseHeader { correlation_id })
    };
    let header = read().map_err(|error: DecodeError| error.in_field("ResponseHeader"))?;
    Ok((header, reader))
}

/// Appends a whole frame with a request.
pub fn write_request<'a, R: Request<'a>>(
    writer: &mut Writer,
    correlation_id: i32,
    client_id: Option<&str>,
    version: i16,
    request: &R,
) -> Result<(), EncodeError> {
    write_frame(writer, |writer| {
        writer.put(&R::API.key().to_be_bytes());
        writer.put(&version.to_be_bytes());
        writer.put(&correlation_id.to_be_bytes());
        let header_version = R::API.request_header_version(version);
        if header_version >= 1 {
            client_id
                .encode_in(writer, HEADER_FORM)
                .map_err(|error| error.in_field("RequestHeader.client_id"))?;
        }
        if header_version >= 2 {
            writer.put_varint(0);
        }
        request.encode(writer, version)
    })
}

/// Appends a whole frame with a response. The length counts the gaps too.
pub fn write_response<'a, R: Response<'a>>(
    writer: &mut Writer,
    correlation_id: i32,
    version: i16,
    response: &R,
) -> Result<(), EncodeError> {
    write_frame(writer, |writer| {
        writer.put(&correlation_id.to_be_bytes());
        if R::API.response_header_version(version) >= 1 {
            writer.put_varint(0);
        }
        response.encode(writer, version)
    })
}

/// Appends what `write` appends, led by its length.
fn write_frame(
    writer: &mut Writer,
    write: impl FnOnce(&mut Writer) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let at = writer.bytes().len();
    writer.put(&[0; FRAME_LENGTH_BYTES]);
    let begin = writer.total_bytes();
    write(writer)?;
    let length = writer.total_bytes().saturating_sub(begin);
    let length = i32::try_from(length).map_err(|_| EncodeError {
        field: "",
        fault: EncodeFault::TooLong { length: usize::try_from(length).unwrap_or(usize::MAX) },
    })?;
    writer.patch(at, length.to_be_bytes());
    Ok(())
}
