//! AdamW with decay groups and clipping by the global gradient norm.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use rem_kernels::{AdamWInput, AdamWStep};

use crate::config::{OptimizerConfig, Train};
use crate::model::weights::{Array, Arrays};

/// Which parameters the weight decay applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecayGroup {
    /// Every parameter (tokenizer, controller).
    All,
    /// The matrices of linear layers: no biases, norms or embeddings (world model).
    WeightMatrices,
}

impl DecayGroup {
    fn decays(self, name: &str, rank: usize) -> bool {
        match self {
            Self::All => true,
            Self::WeightMatrices => rank == 2 && name.ends_with(".weight"),
        }
    }
}

/// The error for a loss or gradient that is not finite. The weights have not changed.
#[derive(Clone, Debug, PartialEq)]
pub struct NotFinite(pub String);

#[derive(Clone, Debug)]
struct Moments {
    first: Tensor<1>,
    second: Tensor<1>,
}

/// AdamW for all parameters of a module. Moments are kept by parameter name.
#[derive(Clone, Debug)]
pub struct AdamW {
    learning_rate: f64,
    weight_decay: f64,
    max_grad_norm: f64,
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    group: DecayGroup,
    steps: u64,
    moments: BTreeMap<String, Moments>,
}

impl AdamW {
    /// An optimizer without moments, with settings of a component and of the run.
    pub fn new(optimizer: &OptimizerConfig, train: &Train, group: DecayGroup) -> Self {
        Self {
            learning_rate: optimizer.learning_rate,
            weight_decay: optimizer.weight_decay,
            max_grad_norm: optimizer.max_grad_norm,
            beta_1: train.beta_1,
            beta_2: train.beta_2,
            epsilon: train.adam_epsilon,
            group,
            steps: 0,
            moments: BTreeMap::new(),
        }
    }

    /// Sets the learning rate of the next steps.
    pub fn set_learning_rate(&mut self, rate: f64) {
        self.learning_rate = rate;
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Takes a step. Returns the module and the global gradient norm before clipping.
    ///
    /// # Errors
    ///
    /// If the loss or a gradient is not finite.
    pub fn step<M: Module>(&mut self, module: M, loss: &Tensor<1>) -> Result<(M, f64), NotFinite> {
        let value: f32 = loss.clone().inner().into_scalar();
        if !value.is_finite() {
            return Err(NotFinite(format!("the loss is {value}")));
        }
        let mut gathered = Gathered::new(GradientsParams::from_grads(loss.backward(), &module));
        module.visit(&mut gathered);
        let norm = gathered.norm()?;
        self.steps += 1;
        let scale = (self.max_grad_norm / (norm + 1e-6)).min(1.0);
        let parameters = (gathered.found.iter())
            .map(|found| self.parameter(found, scale))
            .collect();
        let mut values = BTreeMap::new();
        for (found, new) in gathered.found.iter().zip(rem_kernels::adamw(parameters)) {
            let moments = Moments {
                first: new.first,
                second: new.second,
            };
            self.moments.insert(found.name.clone(), moments);
            values.insert(found.name.clone(), new.value);
        }
        let path = Vec::new();
        Ok((module.map(&mut Replace { values, path }), norm))
    }

    /// The input of the kernel for one parameter. Takes its moments out of the map.
    fn parameter(&mut self, found: &Found, gradient_scale: f64) -> AdamWInput {
        let (first, second) = match self.moments.remove(&found.name) {
            Some(m) => (m.first, m.second),
            None => (found.gradient.zeros_like(), found.gradient.zeros_like()),
        };
        let t = self.steps as i32;
        AdamWInput {
            value: found.value.clone(),
            gradient: found.gradient.clone(),
            first,
            second,
            step: AdamWStep {
                learning_rate: self.learning_rate,
                beta_1: self.beta_1,
                beta_2: self.beta_2,
                epsilon: self.epsilon,
                bias_correction_1: 1.0 - self.beta_1.powi(t),
                bias_correction_2_sqrt: (1.0 - self.beta_2.powi(t)).sqrt(),
                decay_factor: if self.group.decays(&found.name, found.rank) {
                    1.0 - self.learning_rate * self.weight_decay
                } else {
                    1.0
                },
                gradient_scale,
            },
        }
    }

    /// The moments as arrays, by parameter. The step count is stored separately.
    pub fn to_arrays(&self) -> Arrays {
        let mut arrays = Arrays::new();
        for (name, m) in &self.moments {
            arrays.insert(format!("{name}/first"), Array::from_tensor(m.first.clone()));
            arrays.insert(
                format!("{name}/second"),
                Array::from_tensor(m.second.clone()),
            );
        }
        arrays
    }

    /// Restores moments from [`AdamW::to_arrays`].
    pub fn restore(&mut self, arrays: &Arrays, steps: u64, device: &Device) -> Result<(), String> {
        let device = &device.clone().without_autodiff();
        let mut moments = BTreeMap::new();
        for (name, first) in arrays {
            let Some(name) = name.strip_suffix("/first") else {
                continue;
            };
            let second = arrays
                .get(&format!("{name}/second"))
                .ok_or_else(|| format!("the second moment of `{name}` is missing"))?;
            let tensor = |a: &Array| Tensor::from_data(a.to_data(), device);
            let pair = Moments {
                first: tensor(first),
                second: tensor(second),
            };
            moments.insert(name.to_string(), pair);
        }
        self.moments = moments;
        self.steps = steps;
        Ok(())
    }
}

/// A parameter that has a gradient, both flat.
struct Found {
    name: String,
    rank: usize,
    value: Tensor<1>,
    gradient: Tensor<1>,
}

/// The parameters of a module that have a gradient.
struct Gathered {
    grads: GradientsParams,
    path: Vec<String>,
    found: Vec<Found>,
}

impl Gathered {
    fn new(grads: GradientsParams) -> Self {
        Self {
            grads,
            path: Vec::new(),
            found: Vec::new(),
        }
    }

    /// The norm over all gradients.
    fn norm(&self) -> Result<f64, NotFinite> {
        let gradients: Vec<_> = self.found.iter().map(|f| f.gradient.clone()).collect();
        let sums = rem_kernels::sums_of_squares(&gradients);
        match sums.iter().position(|s| !s.is_finite()) {
            Some(i) => Err(NotFinite(format!(
                "the gradient of `{}` is not finite",
                self.found[i].name
            ))),
            None => Ok(sums.iter().sum::<f64>().sqrt()),
        }
    }
}

impl ModuleVisitor for Gathered {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.grads.remove::<D>(param.id) else {
            return;
        };
        let count = gradient.shape().num_elements();
        self.found.push(Found {
            name: self.path.join("."),
            rank: D,
            value: param.val().inner().reshape([count]),
            gradient: gradient.reshape([count]),
        });
    }
}

/// Replaces parameters by new values.
struct Replace {
    values: BTreeMap<String, Tensor<1>>,
    path: Vec<String>,
}

impl ModuleMapper for Replace {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(value) = self.values.remove(&self.path.join(".")) else {
            return param;
        };
        param.map(|old| {
            let new = value.reshape(old.shape());
            new.autodiff().set_require_grad(old.is_require_grad())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use burn::nn::{Linear, LinearConfig};

    fn setup(decay: f64) -> (Linear, AdamW) {
        let mut config = Config::load("debug", &[]).unwrap();
        config.tokenizer.optimizer.weight_decay = decay;
        config.tokenizer.optimizer.learning_rate = 0.1;
        let linear = LinearConfig::new(2, 1).init(&Device::flex().autodiff());
        (
            linear,
            AdamW::new(&config.tokenizer.optimizer, &config.train, DecayGroup::All),
        )
    }

    fn loss(linear: &Linear, factor: f32) -> Tensor<1> {
        let x = Tensor::<2>::from_floats([[1.0, -2.0]], &Device::flex());
        linear.forward(x).mul_scalar(factor).sum()
    }

    #[test]
    fn the_first_step_has_the_size_of_the_learning_rate() {
        let (linear, mut optimizer) = setup(0.0);
        let before = linear.weight.val().inner();
        let l = loss(&linear, 1.0);
        let (linear, norm) = optimizer.step(linear, &l).unwrap();
        assert!((norm - 6f64.sqrt()).abs() < 1e-6); // weights 1, -2 and bias 1
        let moved: Vec<f32> = (linear.weight.val().inner() - before)
            .try_into_vec_as()
            .unwrap();
        assert!(
            (moved[0] + 0.1).abs() < 1e-5 && (moved[1] - 0.1).abs() < 1e-5,
            "{moved:?}"
        );
    }

    #[test]
    fn a_gradient_that_is_not_finite_leaves_weights_and_moments() {
        let (linear, mut optimizer) = setup(0.01);
        let l = loss(&linear, 1.0);
        let (linear, _) = optimizer.step(linear, &l).unwrap();
        let (weights, moments) = (
            crate::model::weights::collect(&linear),
            optimizer.to_arrays(),
        );
        let bad = loss(&linear, f32::INFINITY);
        assert!(optimizer.step(linear.clone(), &bad).is_err());
        assert_eq!(crate::model::weights::collect(&linear), weights);
        assert_eq!(optimizer.to_arrays(), moments);
    }

    #[test]
    fn a_restored_optimizer_takes_the_same_step() {
        let (mut linear, mut optimizer) = setup(0.01);
        for _ in 0..3 {
            let l = loss(&linear, 1.0);
            linear = optimizer.step(linear, &l).unwrap().0;
        }
        let (_, mut other) = setup(0.01);
        other
            .restore(&optimizer.to_arrays(), optimizer.steps(), &Device::flex())
            .unwrap();
        let (l, copy) = (loss(&linear, 1.0), linear.clone());
        let a = optimizer.step(linear, &l).unwrap().0;
        let l = loss(&copy, 1.0);
        let b = other.step(copy, &l).unwrap().0;
        assert_eq!(
            crate::model::weights::collect(&a),
            crate::model::weights::collect(&b)
        );
    }

    /// IRIS: weights of linear layers, no biases, norms or embeddings.
    #[test]
    fn only_linear_layers_of_a_transformer_decay() {
        use crate::model::world_model::{WorldModel, WorldModelSizes};
        let config = Config::load("ablation-iris", &[]).unwrap();
        let sizes = WorldModelSizes::of(&config, 3);
        let (precision, device) = (rem_kernels::Precision::F32, Device::flex());
        let model = WorldModel::new(&config.world_model, sizes, precision, &device);
        let arrays = crate::model::weights::collect(&model);
        let (decayed, others): (Vec<_>, Vec<_>) = (arrays.iter())
            .partition(|(name, a)| DecayGroup::WeightMatrices.decays(name, a.shape.len()));
        // Six linear layers in each of two layers, two in each of three heads.
        assert_eq!(decayed.len(), 2 * 6 + 3 * 2);
        let embeddings = others.iter().filter(|(_, a)| a.shape.len() == 2);
        let names: Vec<&str> = embeddings.map(|(name, _)| &name[..]).collect();
        let expected = [
            "action_embeddings",
            "network.Transformer.positions",
            "observation_embeddings",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn weight_matrices_exclude_norms_biases_and_embeddings() {
        let matrices = DecayGroup::WeightMatrices;
        assert!(matrices.decays("retnet.layers.0.q_proj.weight", 2));
        assert!(!matrices.decays("retnet.layers.0.norm1.gamma", 1));
        assert!(!matrices.decays("retnet.layers.0.q_proj.bias", 1));
        assert!(!matrices.decays("action_embeddings", 2));
    }
}
