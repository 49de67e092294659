//! Tensors are put into fused and stacked ones and taken out again.

use trafoc::hub::arrange::Layout;

#[test]
fn what_is_put_is_taken() {
    let layouts =
        [(1, false, None), (2, false, None), (2, true, None), (1, true, Some(3)), (4, true, Some(2))];
    for (groups, transpose, stack) in layouts {
        let of = |which, index| Layout {
            stack: stack.map(|count| (count, index)),
            parts: vec![8, 4, 4],
            which,
            groups,
            columns: 5,
            transpose,
        };
        let mut tensor = vec![f32::NAN; of(0, 0).len().unwrap()];
        let values = |which: usize, index: usize| -> Vec<f32> {
            let rows = [8, 4, 4][which];
            (0..rows * 5).map(|i| (1000 * index + 100 * which + i) as f32).collect()
        };
        let all: Vec<(usize, usize)> =
            (0..stack.unwrap_or(1)).flat_map(|i| (0..3).map(move |w| (w, i))).collect();
        for (which, index) in &all {
            assert!(of(*which, *index).put(&values(*which, *index), &mut tensor));
        }
        assert!(tensor.iter().all(|x| !x.is_nan()), "{groups} {transpose} {stack:?}");
        for (which, index) in all {
            assert_eq!(of(which, index).take(&tensor).unwrap(), values(which, index));
        }
    }
}
