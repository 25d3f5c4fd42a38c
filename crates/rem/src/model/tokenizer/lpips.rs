//! LPIPS: perceptual distance on VGG-16 features, with weights written by `rem import lpips`.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::tensor::{Device, Tensor};
use rem_kernels::{Activation, ConvKind, Precision, feature_distance, max_pool_relu};

use crate::model::conv::{conv, conv3};

/// Number of convolutions and channels of each VGG-16 stage. LPIPS reads the features at the end of each stage.
pub const STAGES: [(usize, usize); 5] = [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)];

const SHIFT: [f32; 3] = [-0.030, -0.088, -0.188];
const SCALE: [f32; 3] = [0.458, 0.448, 0.450];

/// The convolutions of VGG-16 and the linear head of each stage.
#[derive(Module, Debug)]
pub struct Lpips {
    stages: Vec<Stage>,
    heads: Vec<Conv2d>,
    #[module(skip)]
    precision: Precision,
}

#[derive(Module, Debug)]
struct Stage {
    convs: Vec<Conv2d>,
}

impl Lpips {
    /// A network with random weights, to be replaced by [`apply`](crate::model::weights::apply). Its device has no
    /// autodiff, as the weights are fixed.
    pub fn new(precision: Precision, device: &Device) -> Self {
        let device = &device.clone().without_autodiff();
        let mut from = 3;
        let stages = STAGES
            .iter()
            .map(|&(count, width)| Stage {
                convs: (0..count)
                    .map(|_| conv3(std::mem::replace(&mut from, width), width, device))
                    .collect(),
            })
            .collect();
        let head = |&(_, width): &(usize, usize)| {
            Conv2dConfig::new([width, 1], [1, 1])
                .with_bias(false)
                .init(device)
        };
        Self {
            stages,
            heads: STAGES.iter().map(head).collect(),
            precision,
        }
    }

    /// The distance of each pair of images in [-1, 1]: `[n, h, w, 3]` twice -> `[n]`. Only `b` may need a gradient.
    pub fn distance(&self, a: Tensor<4>, b: Tensor<4>) -> Tensor<1> {
        let mut a = normalize_colors(a);
        let mut b = normalize_colors(b);
        let mut total: Option<Tensor<1>> = None;
        for (i, (stage, head)) in self.stages.iter().zip(&self.heads).enumerate() {
            if i > 0 {
                (a, b) = (max_pool_relu(a), max_pool_relu(b));
            }
            for (j, layer) in stage.convs.iter().enumerate() {
                let activation = if j == 0 {
                    Activation::None
                } else {
                    Activation::Relu
                };
                let step = |x| conv(layer, ConvKind::Same, activation, x, self.precision);
                (a, b) = (step(a), step(b));
            }
            let [_, width, ..] = head.weight.dims();
            let weights: Tensor<1> = head.weight.val().reshape([width]);
            let term = feature_distance(a.clone(), b.clone(), weights);
            total = Some(match total {
                Some(sum) => sum + term,
                None => term,
            });
        }
        total.expect("there are five stages")
    }
}

fn normalize_colors(x: Tensor<4>) -> Tensor<4> {
    let (device, dtype) = (x.device().without_autodiff(), x.dtype());
    let channel = |v: [f32; 3]| Tensor::<1>::from_data(v, (&device, dtype)).reshape([1, 1, 1, 3]);
    (x - channel(SHIFT)) / channel(SCALE)
}
