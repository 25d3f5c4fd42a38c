//! The part of NumPy's `.npz` format that episodes need: a ZIP archive of `.npy` arrays.
//!
//! Not a crate: `npyz` and `ndarray-npy` parse headers with a grammar for Python literals and bring another version of
//! `zip`, for 40 lines of headers.

use std::io::{Cursor, Read, Write};

use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// Limit on the size of an array, so that a damaged or malicious archive cannot exhaust the memory.
const MAX_BYTES: u64 = 1 << 31;

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";

/// An array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Npy {
    /// NumPy's element type, such as `|u1`.
    descr: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Npy {
    pub(crate) fn new(descr: &str, shape: Vec<usize>, bytes: Vec<u8>) -> Self {
        Self {
            descr: descr.into(),
            shape,
            bytes,
        }
    }

    pub(crate) fn bytes(shape: Vec<usize>, bytes: Vec<u8>) -> Self {
        Self::new("|u1", shape, bytes)
    }

    pub(super) fn text(text: &str) -> Self {
        Self::new(
            &format!("|S{}", text.len().max(1)),
            vec![],
            padded(text, text.len().max(1)),
        )
    }

    pub(crate) fn texts(texts: &[String]) -> Self {
        let width = texts.iter().map(String::len).max().unwrap_or(0).max(1);
        let bytes = texts.iter().flat_map(|text| padded(text, width)).collect();
        Self::new(&format!("|S{width}"), vec![texts.len()], bytes)
    }

    fn to_file(&self) -> Vec<u8> {
        let sizes: Vec<String> = self.shape.iter().map(|size| format!("{size},")).collect();
        let header = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
            self.descr,
            sizes.join(" ")
        );
        // The header ends with a newline, at a multiple of 64 bytes.
        let before = MAGIC.len() + 2 + header.len() + 1;
        let length = header.len() + 1 + before.next_multiple_of(64) - before;
        let mut file = MAGIC.to_vec();
        file.extend((length as u16).to_le_bytes());
        file.extend(format!("{header:<0$}\n", length - 1).into_bytes());
        file.extend(&self.bytes);
        file
    }

    /// The elements, if they are numbers or booleans.
    fn numbers(&self) -> Option<Vec<f64>> {
        let bytes = &self.bytes[..];
        macro_rules! numbers {
            ($type:ty) => {{
                let (values, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
                values
                    .iter()
                    .map(|v| <$type>::from_le_bytes(*v) as f64)
                    .collect()
            }};
        }
        Some(match &self.descr[..] {
            "|u1" | "|b1" => numbers!(u8),
            "|i1" => numbers!(i8),
            "<u2" => numbers!(u16),
            "<i2" => numbers!(i16),
            "<u4" => numbers!(u32),
            "<i4" => numbers!(i32),
            "<u8" => numbers!(u64),
            "<i8" => numbers!(i64),
            "<f4" => numbers!(f32),
            "<f8" => numbers!(f64),
            _ => return None,
        })
    }

    fn from_file(file: &[u8]) -> Option<Self> {
        let (length, rest) = file.strip_prefix(MAGIC)?.split_first_chunk::<2>()?;
        let (header, bytes) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        let header = std::str::from_utf8(header).ok()?;
        let after = |key: &str| Some(&header[header.find(key)? + key.len()..]);
        let descr = after("'descr': '")?.split('\'').next()?;
        if !after("'fortran_order': ")?.starts_with("False") {
            return None;
        }
        let shape = after("'shape': (")?.split(')').next()?;
        let sizes = shape.split(',').map(str::trim).filter(|s| !s.is_empty());
        let shape: Vec<usize> = sizes.map(|size| size.parse().ok()).collect::<Option<_>>()?;
        let item: usize = descr.get(2..)?.parse().ok()?;
        let count = shape.iter().try_fold(item, |n, size| n.checked_mul(*size));
        (count == Some(bytes.len())).then(|| Self::new(descr, shape, bytes.to_vec()))
    }
}

/// Images of one size.
pub(crate) struct Images {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    bytes: Vec<u8>,
}

impl Images {
    fn size(&self) -> usize {
        self.height * self.width * self.channels
    }

    pub(crate) fn count(&self) -> usize {
        self.bytes.len() / self.size()
    }

    pub(crate) fn get(&self, image: usize) -> &[u8] {
        &self.bytes[image * self.size()..][..self.size()]
    }
}

fn padded(text: &str, width: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(width, 0);
    bytes
}

/// The bytes of an archive.
pub(crate) fn write(arrays: &[(&str, Npy)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    // Without a modification time, so that equal episodes give equal files.
    let options = SimpleFileOptions::default().last_modified_time(zip::DateTime::default());
    for (name, array) in arrays {
        zip.start_file(format!("{name}.npy"), options)
            .and_then(|()| Ok(zip.write_all(&array.to_file())?))
            .expect("writing to memory succeeds");
    }
    let written = zip.finish().expect("writing to memory succeeds");
    written.into_inner()
}

/// An archive to read arrays from.
pub(crate) struct Npz<'a>(ZipArchive<Cursor<&'a [u8]>>);

impl<'a> Npz<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let archive = ZipArchive::new(Cursor::new(bytes));
        archive
            .map(Self)
            .map_err(|error| format!("not an .npz file: {error}"))
    }

    fn array(&mut self, name: &str) -> Result<Npy, String> {
        let missing = |_| format!("the array `{name}` is missing");
        let entry = self.0.by_name(&format!("{name}.npy")).map_err(missing)?;
        let mut file = Vec::new();
        (entry.take(MAX_BYTES).read_to_end(&mut file))
            .map_err(|error| format!("the array `{name}`: {error}"))?;
        Npy::from_file(&file).ok_or_else(|| format!("the array `{name}` is damaged"))
    }

    /// The array `name`, which must have this element type.
    pub(super) fn take(&mut self, name: &str, descr: &str) -> Result<Npy, String> {
        let array = self.array(name)?;
        match array.descr == descr {
            true => Ok(array),
            false => Err(format!("`{name}` is of type {}, not {descr}", array.descr)),
        }
    }

    /// The first array with one of these names.
    fn first(&mut self, names: &[&str]) -> Option<(String, Npy)> {
        let found = names
            .iter()
            .find_map(|name| Some((*name, self.array(name).ok()?)));
        found.map(|(name, array)| (name.to_owned(), array))
    }

    /// The values of the first array with one of these names; `None` if there is none.
    ///
    /// # Errors
    /// If it is not a list of numbers or booleans.
    pub(crate) fn numbers(&mut self, names: &[&str]) -> Result<Option<Vec<f64>>, String> {
        let Some((name, array)) = self.first(names) else {
            return Ok(None);
        };
        let ([_] | [_, 1]) = array.shape[..] else {
            return Err(format!(
                "`{name}` has the shape {:?}, not that of a list",
                array.shape
            ));
        };
        let values = array.numbers();
        values
            .map(Some)
            .ok_or_else(|| format!("`{name}` is of type {}", array.descr))
    }

    /// The images of the first array with one of these names.
    ///
    /// # Errors
    /// If there is none, or it does not hold images.
    pub(crate) fn images(&mut self, names: &[&str]) -> Result<Images, String> {
        let found = self.first(names);
        let (name, array) =
            found.ok_or_else(|| format!("no array is named `{}`", names.join("`, `")))?;
        if array.descr != "|u1" {
            return Err(format!("`{name}` is of type {}, not |u1", array.descr));
        }
        let (height, width, channels) = match array.shape[..] {
            [_, height, width] => (height, width, 1),
            [_, height, width, channels @ (1 | 3)] => (height, width, channels),
            _ => {
                return Err(format!(
                    "`{name}` has the shape {:?}, not [n, height, width] or [n, height, width, 1 or 3]",
                    array.shape
                ));
            }
        };
        if array.bytes.is_empty() {
            return Err("the episode has no frames".into());
        }
        Ok(Images {
            height,
            width,
            channels,
            bytes: array.bytes,
        })
    }

    /// The strings of the array `name`.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, String> {
        let array = self.array(name)?;
        let width = array.descr.strip_prefix("|S").and_then(|n| n.parse().ok());
        let width: usize = width
            .filter(|width| *width > 0)
            .ok_or_else(|| format!("`{name}` is not an array of byte strings"))?;
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(width);
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        Ok(array.bytes.chunks(width).map(text).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_equals_numpys() {
        let file = Npy::new("<f4", vec![2, 3], vec![0; 24]).to_file();
        assert_eq!(file.len(), 128 + 24);
        assert_eq!(&file[..10], b"\x93NUMPY\x01\x00\x76\x00");
        let header = std::str::from_utf8(&file[10..128]).unwrap();
        assert!(header.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }"));
        assert!(header.ends_with(" \n"));
    }

    #[test]
    fn damaged_arrays_are_rejected() {
        let array = Npy::bytes(vec![2, 2], vec![1, 2, 3, 4]);
        let file = array.to_file();
        assert_eq!(Npy::from_file(&file), Some(array));
        for damaged in [
            &file[..file.len() - 1],
            &file[..60],
            b"\x93NUMPY\x01\x00",
            b"",
        ] {
            assert_eq!(Npy::from_file(damaged), None);
        }
    }
}
