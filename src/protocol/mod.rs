//! Kafka's wire protocol: bytes in, values out, and back. Both sides of a connection.
//!
//! Lives here: the encodings (`wire`), frames and headers (`frame`), the one table of APIs and versions (`api`), every
//! request and response as a declaration of fields with version ranges (`messages`).
//! Not here: what a request means, error codes (server), what is inside record batches (`record`), sockets, files.
//! Holds always: decoding borrows from the frame, takes no memory for what the bytes at hand cannot hold, does not
//! recurse on input, never panics and says which field is wrong and where; what is encoded is whole or an error.
//!
//! ```
//! use stratalog::protocol::{self, ApiKey, Request, messages::metadata::MetadataRequest, wire::Writer};
//!
//! let mut writer = Writer::new();
//! protocol::write_request(&mut writer, 7, Some("me"), 12, &MetadataRequest::default())?;
//! let (header, body) = protocol::read_request_header(&writer.bytes()[4..])?;
//! assert_eq!((header.api(), header.api_version), (Some(ApiKey::Metadata), 12));
//! let request = MetadataRequest::decode(body, header.api_version)?;
//! # use stratalog::protocol::Message;
//! # assert_eq!(request, MetadataRequest::default());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::cast_possible_truncation))]

mod api;
#[macro_use]
mod declare;
mod error;
mod frame;
pub mod messages;
pub mod wire;

pub use api::{ApiKey, Versions};
pub use error::{DecodeError, DecodeFault, EncodeError, EncodeFault};
pub use frame::{
    FRAME_LENGTH_BYTES, FrameFault, RequestHeader, ResponseHeader, frame_length, read_request_header,
    read_response_header, write_request, write_response,
};

#[cfg(test)]
mod tests;

use wire::{Form, Reader, Wire, Writer};

/// A request or a response: the fields that follow the header in a frame.
pub trait Message<'a>: Wire<'a> {
    /// The API it belongs to.
    const API: ApiKey;

    /// Reads `body`, all of it.
    ///
    /// What the bytes are wrong in is an error, bytes that are left over too.
    fn decode(body: Reader<'a>, version: i16) -> Result<Self, DecodeError> {
        let mut body = body;
        let message = Self::decode_some(&mut body, version)?;
        body.finish().map(|()| message)
    }

    /// Reads from the front of `body` and leaves what follows.
    fn decode_some(body: &mut Reader<'a>, version: i16) -> Result<Self, DecodeError> {
        if !Self::API.versions().contains(version) {
            return Err(body.error(DecodeFault::Version(version)));
        }
        Self::decode_in(body, Self::API.form(version))
    }

    /// Appends the fields that `version` has.
    ///
    /// After an error the writer holds a part of the message and is of no use.
    fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError> {
        if !Self::API.versions().contains(version) {
            return Err(EncodeError { field: "", fault: EncodeFault::Version(version) });
        }
        self.encode_in(writer, Self::API.form(version))
    }
}

/// A message from a client.
pub trait Request<'a>: Message<'a> {
    /// What it is answered with.
    type Response<'r>: Response<'r>;
}

/// A message from a broker.
pub trait Response<'a>: Message<'a> {}

impl ApiKey {
    /// How values of `version` are encoded.
    fn form(self, version: i16) -> Form {
        Form { version, flexible: self.is_flexible(version), nullable: false }
    }
}
