//! Control records: what a transaction coordinator writes among the data, and no application is given.

use super::{
    BatchError, BatchHeader, Record,
    header::{CONTROL_BIT, TRANSACTIONAL_BIT},
};
use crate::offset::{Offset, Timestamp};

/// What a control record says, by the number in its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlType {
    /// The producer's open transaction is aborted.
    Abort,
    /// The producer's open transaction is committed.
    Commit,
    /// A new leader (cluster metadata).
    LeaderChange,
    /// Opens a snapshot (cluster metadata).
    SnapshotHeader,
    /// Closes a snapshot (cluster metadata).
    SnapshotFooter,
    /// The version of the consensus protocol (cluster metadata).
    KRaftVersion,
    /// Who votes (cluster metadata).
    KRaftVoters,
    /// A number that is not known here; to be ignored.
    Unknown(i16),
}

impl ControlType {
    /// Kafka's name for it; `UNKNOWN` for those it does not know either.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abort => "ABORT",
            Self::Commit => "COMMIT",
            Self::LeaderChange => "LEADER_CHANGE",
            Self::SnapshotHeader => "SNAPSHOT_HEADER",
            Self::SnapshotFooter => "SNAPSHOT_FOOTER",
            Self::KRaftVersion => "KRAFT_VERSION",
            Self::KRaftVoters => "KRAFT_VOTERS",
            Self::Unknown(_) => "UNKNOWN",
        }
    }
}

/// What the control record with this key says. Versions of the key above 0 may be longer and are read alike.
pub fn control_type(key: &[u8]) -> Result<ControlType, BatchError> {
    let bad = |reason| BatchError::BadControlRecord { reason };
    let (version, rest) = key.split_first_chunk().ok_or(bad("its key is shorter than 4 bytes"))?;
    let (number, _) = rest.split_first_chunk().ok_or(bad("its key is shorter than 4 bytes"))?;
    if i16::from_be_bytes(*version) < 0 {
        return Err(bad("its key has a negative version"));
    }
    Ok(match i16::from_be_bytes(*number) {
        0 => ControlType::Abort,
        1 => ControlType::Commit,
        2 => ControlType::LeaderChange,
        3 => ControlType::SnapshotHeader,
        4 => ControlType::SnapshotFooter,
        5 => ControlType::KRaftVersion,
        6 => ControlType::KRaftVoters,
        number => ControlType::Unknown(number),
    })
}

/// The value of a commit or abort record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTxnMarker {
    /// The epoch of the coordinator that wrote it.
    pub coordinator_epoch: i32,
}

impl EndTxnMarker {
    /// Reads the value; later versions may be longer, their beginning is the same.
    pub fn parse(value: &[u8]) -> Result<Self, BatchError> {
        let bad = |reason| BatchError::BadControlRecord { reason };
        let (version, rest) = value.split_first_chunk().ok_or(bad("its value is shorter than 6 bytes"))?;
        let (epoch, _) = rest.split_first_chunk().ok_or(bad("its value is shorter than 6 bytes"))?;
        if i16::from_be_bytes(*version) < 0 {
            return Err(bad("its value has a negative version"));
        }
        Ok(Self { coordinator_epoch: i32::from_be_bytes(*epoch) })
    }

    /// The value's bytes, version 0.
    pub fn to_bytes(self) -> [u8; 6] {
        let [a, b, c, d] = self.coordinator_epoch.to_be_bytes();
        [0, 0, a, b, c, d]
    }
}

/// The whole batch, of one control record, that ends a producer's transaction.
pub fn end_txn_marker(
    base_offset: Offset,
    leader_epoch: i32,
    (producer_id, producer_epoch): (i64, i16),
    commit: bool,
    marker: EndTxnMarker,
    timestamp: Timestamp,
) -> Vec<u8> {
    let key = [0, 0, 0, u8::from(commit)];
    let value = marker.to_bytes();
    let record = Record::new().key(&key).value(&value).timestamp(timestamp);
    let header = BatchHeader {
        attributes: CONTROL_BIT | TRANSACTIONAL_BIT,
        producer_id,
        producer_epoch,
        ..BatchHeader::first(base_offset, leader_epoch, timestamp)
    };
    super::builder::single(&record, header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_read_by_their_beginning() {
        assert_eq!(control_type(&[0, 0, 0, 1]), Ok(ControlType::Commit));
        assert_eq!(control_type(&[0, 9, 0, 0, 7, 7]), Ok(ControlType::Abort));
        assert_eq!(control_type(&[0, 0, 0, 99]), Ok(ControlType::Unknown(99)));
        assert!(control_type(&[0, 0, 0]).is_err());
        assert!(control_type(&[0x80, 0, 0, 0]).is_err());
        let marker = EndTxnMarker { coordinator_epoch: 9 };
        assert_eq!(EndTxnMarker::parse(&marker.to_bytes()), Ok(marker));
        assert_eq!(EndTxnMarker::parse(&[0, 5, 0, 0, 0, 9, 1, 1, 1]), Ok(marker));
        assert!(EndTxnMarker::parse(&[0, 0, 0, 0, 9]).is_err());
        assert!(EndTxnMarker::parse(&[0xFF, 0, 0, 0, 0, 9]).is_err());
    }
}
