//! How close is close enough, in each precision.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor};
use rem::weights::{Array, Arrays};
use rem_kernels::Precision;

/// What may lie between our numbers and the recorded ones; relative where not said otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    precision: Precision,
    measured: Measured,
    pub values: f32,
    /// Of single losses, and of those of ten steps.
    pub losses: f32,
    pub gradients: f32,
    /// Of gradients that come back through the nearest code, a ReLU or the norm of retained values.
    pub rough_gradients: f32,
    /// Of the norm of all gradients.
    pub gradient_norm: f32,
    /// Absolute, for each element, on top of the relative one.
    near_zero: f32,
    /// The share of tokens that must be the same.
    same_tokens: f32,
}

#[derive(Clone, Copy, Debug)]
enum Measured {
    /// Each element's difference by its own size.
    ByElement,
    /// The norm of a tensor's difference by the norm of the tensor.
    AsAWhole,
}

const F32: Tolerance = Tolerance {
    precision: Precision::F32,
    measured: Measured::ByElement,
    values: 1e-4,
    losses: 1e-4,
    gradients: 1e-3,
    rough_gradients: 1e-3,
    gradient_norm: 1e-4,
    near_zero: 1e-5,
    same_tokens: 1.0,
};

/// A factor rounded to bfloat16 is off by up to 2^-9 of itself, and the products of a network, one after the
/// other, add that up to a percent or two of a tensor; an element that is a small difference of large terms may
/// be off by any share of itself, hence whole tensors. Now and then the nearest code or the sign before a ReLU
/// is another one, and the norm of small retained values magnifies their errors: a gradient that hangs on one row
/// for each step is then off by some ten percent.
const MIXED: Tolerance = Tolerance {
    precision: Precision::Mixed,
    measured: Measured::AsAWhole,
    values: 3e-2,
    losses: 2e-2,
    gradients: 5e-2,
    rough_gradients: 2e-1,
    gradient_norm: 1e-1,
    near_zero: 1e-5,
    same_tokens: 0.95,
};

impl Tolerance {
    pub fn of(precision: Precision) -> Self {
        match precision {
            Precision::F32 => F32,
            Precision::Mixed => MIXED,
        }
    }

    /// The same for numbers that are sums of others of this size.
    pub fn near_zero_of(self, size: f32) -> Self {
        Self {
            near_zero: self.near_zero * size,
            ..self
        }
    }

    /// Fails unless our numbers are within `relative` of theirs.
    pub fn check(&self, name: &str, ours: &[f32], theirs: &[f32], relative: f32) {
        let what = format!("{:?}: {name}", self.precision);
        match self.measured {
            Measured::ByElement => by_element(&what, ours, theirs, relative, self.near_zero),
            Measured::AsAWhole => as_a_whole(&what, ours, theirs, relative, self.near_zero),
        }
    }

    /// Fails unless enough tokens are the same.
    pub fn check_tokens(&self, name: &str, ours: &[f32], theirs: &[f32]) {
        let (precision, count) = (self.precision, theirs.len());
        assert_eq!(ours.len(), count, "{precision:?}: {name}: length");
        let same = ours.iter().zip(theirs).filter(|(a, b)| a == b).count();
        let what = format!("{precision:?}: {name}: {same} of {count} are the same");
        report(&what);
        assert!(same as f32 >= self.same_tokens * count as f32, "{what}");
    }

    /// All gradients of a module within `relative` of the recorded ones, which were brought to our names.
    pub fn check_gradients<M: Module>(
        &self,
        module: &M,
        grads: &Gradients,
        expected: Arrays,
        relative: f32,
    ) {
        let (precision, found) = (self.precision, gradients(module, grads));
        for (name, theirs) in &expected {
            let what = format!("gradient of {name}");
            let ours = found
                .get(name)
                .unwrap_or_else(|| panic!("{precision:?}: no {what}"));
            assert_eq!(ours.shape, theirs.shape, "{precision:?}: {what}");
            self.check(&what, &ours.data, &theirs.data, relative);
        }
        assert_eq!(found.len(), expected.len(), "{precision:?}: gradients");
    }
}

/// Every element within `near_zero` and `relative` of its size.
fn by_element(what: &str, ours: &[f32], theirs: &[f32], relative: f32, near_zero: f32) {
    assert_eq!(ours.len(), theirs.len(), "{what}: length");
    let tolerances = |(a, b): (&f32, &f32)| (a - b).abs() / (near_zero + relative * b.abs());
    let differences = || ours.iter().zip(theirs).map(tolerances);
    let (excess, i) =
        differences().zip(0..).fold(
            (0.0, 0),
            |x, y| if y.0 > x.0 || y.0.is_nan() { y } else { x },
        );
    let beyond = differences().filter(|x| *x > 1.0).count();
    report(&format!(
        "{what}: worst {excess} tolerances, {beyond} of {} beyond",
        ours.len()
    ));
    assert!(
        excess <= 1.0,
        "{what}[{i}]: {} but expected {} ({excess} tolerances)",
        ours[i],
        theirs[i]
    );
}

/// The difference as a whole within `relative` of the tensor's norm, and `near_zero` for each element.
pub fn as_a_whole(what: &str, ours: &[f32], theirs: &[f32], relative: f32, near_zero: f32) {
    assert_eq!(ours.len(), theirs.len(), "{what}: length");
    let norm =
        |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let difference = norm(&mut ours.iter().zip(theirs).map(|(a, b)| a - b));
    let size = norm(&mut theirs.iter().copied());
    let allowed = f64::from(relative) * size + f64::from(near_zero) * (ours.len() as f64).sqrt();
    let what = format!("{what}: off by {difference:.3e} of {size:.3e}, allowed {allowed:.3e}");
    report(&what);
    assert!(difference <= allowed, "{what}");
}

fn report(line: &str) {
    if std::env::var_os("REM_GOLDEN_VERBOSE").is_some() {
        eprintln!("{line}");
    }
}

/// The gradients of a module's parameters by their names.
fn gradients<M: Module>(module: &M, grads: &Gradients) -> Arrays {
    struct Collect<'a> {
        grads: &'a Gradients,
        path: Vec<String>,
        found: Arrays,
    }
    impl ModuleVisitor for Collect<'_> {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.push(name.into());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(grad) = param.val().grad(self.grads) {
                self.found
                    .insert(self.path.join("."), Array::from_tensor(grad));
            }
        }
    }
    let mut collect = Collect {
        grads,
        path: vec![],
        found: Arrays::new(),
    };
    module.visit(&mut collect);
    collect.found
}
