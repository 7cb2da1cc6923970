//! Columns: a name, an Arrow type, and the values of rows as an array.
//!
//! Whole numbers are signed and of 64 bits: engines disagree about unsigned ones (Spark makes decimals of them), and
//! narrow ones save nothing in a compressed file. A larger number, which only a forged report has, becomes the largest.

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow_schema::{DataType, Field};
use std::sync::Arc;

/// A column of rows `R`.
pub(crate) struct Column<R> {
    pub(crate) field: Field,
    pub(crate) values: Values<R>,
}

/// What makes an array of rows.
type Values<R> = Box<dyn Fn(&[R]) -> ArrayRef>;

/// The column of a field.
pub(crate) fn column<R: 'static, C: Cell + 'static>(name: &str, get: fn(&R) -> &C) -> Column<R> {
    Column {
        field: Field::new(name, C::data_type(), false),
        values: Box::new(move |rows| C::array(&mut rows.iter().map(get))),
    }
}

/// Defines a function that gives the columns of a type's fields.
macro_rules! columns {
    ($name:ident of $row:ident: $($field:ident),* $(,)?) => {
        pub(crate) fn $name() -> Vec<Column<$row>> {
            vec![$($crate::column::column(stringify!($field), |row: &$row| &row.$field)),*]
        }
    };
}
pub(crate) use columns;

/// A type that columns can have.
pub(crate) trait Cell {
    fn data_type() -> DataType;
    fn array(cells: &mut dyn Iterator<Item = &Self>) -> ArrayRef;
}

impl Cell for String {
    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn array(cells: &mut dyn Iterator<Item = &Self>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(cells))
    }
}

impl Cell for bool {
    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn array(cells: &mut dyn Iterator<Item = &Self>) -> ArrayRef {
        Arc::new(cells.copied().map(Some).collect::<BooleanArray>())
    }
}

impl Cell for f64 {
    fn data_type() -> DataType {
        DataType::Float64
    }

    fn array(cells: &mut dyn Iterator<Item = &Self>) -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(cells.copied()))
    }
}

/// A whole number.
macro_rules! whole {
    ($($number:ty),*) => {$(
        impl Cell for $number {
            fn data_type() -> DataType {
                DataType::Int64
            }

            fn array(cells: &mut dyn Iterator<Item = &Self>) -> ArrayRef {
                Arc::new(Int64Array::from_iter_values(cells.map(|&cell| signed(cell))))
            }
        }
    )*};
}
whole!(i32, u32, i64, u64);

fn signed(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

impl Cell for Vec<u64> {
    fn data_type() -> DataType {
        list(DataType::Int64)
    }

    fn array(cells: &mut dyn Iterator<Item = &Self>) -> ArrayRef {
        let mut lists = ListBuilder::new(Int64Builder::new()).with_field(item(DataType::Int64));
        for cell in cells {
            lists.append_value(cell.iter().map(|&number| Some(signed(number))));
        }
        Arc::new(lists.finish())
    }
}

impl Cell for Vec<String> {
    fn data_type() -> DataType {
        list(DataType::Utf8)
    }

    fn array(cells: &mut dyn Iterator<Item = &Self>) -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new()).with_field(item(DataType::Utf8));
        for cell in cells {
            lists.append_value(cell.iter().map(Some));
        }
        Arc::new(lists.finish())
    }
}

fn list(of: DataType) -> DataType {
    DataType::List(Arc::new(item(of)))
}

fn item(of: DataType) -> Field {
    Field::new("item", of, false)
}
