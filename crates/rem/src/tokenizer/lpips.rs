//! The perceptual distance LPIPS over VGG-16 features, from weights that `rem import lpips` prepared.

use burn::module::Module;
use burn::nn::PaddingConfig2d;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::tensor::activation::relu;
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Device, Tensor};

/// Convolutions per stage of VGG-16 and their width; a stage ends at the ReLU whose output LPIPS reads.
pub const STAGES: [(usize, usize); 5] = [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)];

const SHIFT: [f32; 3] = [-0.030, -0.088, -0.188];
const SCALE: [f32; 3] = [0.458, 0.448, 0.450];

/// VGG-16 up to its last ReLU, and the five heads.
#[derive(Module, Debug)]
pub struct Lpips {
    stages: Vec<Stage>,
    heads: Vec<Conv2d>,
}

#[derive(Module, Debug)]
struct Stage {
    convs: Vec<Conv2d>,
}

impl Lpips {
    /// The network with weights still to be loaded; it lives without autodiff: its weights never change.
    pub fn new(device: &Device) -> Self {
        let device = &device.clone().without_autodiff();
        let mut from = 3;
        let stages = STAGES
            .iter()
            .map(|&(count, width)| Stage {
                convs: (0..count)
                    .map(|_| {
                        let channels = [std::mem::replace(&mut from, width), width];
                        Conv2dConfig::new(channels, [3, 3])
                            .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                            .init(device)
                    })
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
        }
    }

    /// The distance of each pair of images in [-1, 1]: two `[n, 3, h, w]` -> `[n]`.
    pub fn distance(&self, a: Tensor<4>, b: Tensor<4>) -> Tensor<1> {
        let [n, ..] = a.dims();
        let mut a = normalise_colours(a);
        let mut b = normalise_colours(b);
        let mut total: Option<Tensor<1>> = None;
        for (i, (stage, head)) in self.stages.iter().zip(&self.heads).enumerate() {
            if i > 0 {
                (a, b) = (half_as_large(a), half_as_large(b));
            }
            for conv in &stage.convs {
                (a, b) = (relu(conv.forward(a)), relu(conv.forward(b)));
            }
            let difference = (unit_channels(a.clone()) - unit_channels(b.clone())).square();
            // [n, 1, h, w] -> [n, h * w]
            let weighted: Tensor<2> = head.forward(difference).flatten(1, 3);
            let term = weighted.mean_dim(1).reshape([n]);
            total = Some(match total {
                Some(sum) => sum + term,
                None => term,
            });
        }
        total.expect("there are five stages")
    }
}

fn normalise_colours(x: Tensor<4>) -> Tensor<4> {
    let (device, dtype) = (x.device().without_autodiff(), x.dtype());
    let channel = |v: [f32; 3]| Tensor::<1>::from_data(v, (&device, dtype)).reshape([1, 3, 1, 1]);
    (x - channel(SHIFT)) / channel(SCALE)
}

fn half_as_large(x: Tensor<4>) -> Tensor<4> {
    max_pool2d(x, MaxPoolOptions::new([2, 2]))
}

/// Each position divided by the norm of its channels. The floor leaves every value as it is and
/// keeps the square root's gradient finite where all channels are zero.
fn unit_channels(x: Tensor<4>) -> Tensor<4> {
    let norm = x.clone().square().sum_dim(1).clamp_min(1e-20).sqrt();
    x / (norm + 1e-10)
}
