// Package cost learns how much processor time the calls of each customer or route
// take, so that quotas can count processor time in place of requests. A customer with few
// expensive calls then gets no more than its share.
//
// # Who pays for what
//
//   - No customer is charged for the calls of another. A cost is learned for a customer from its own
//     calls, or for a route if the user says that all customers of the route share the cost.
//   - If a call can be measured, its customer is charged what the call has used when it ends,
//     whatever cost was assumed at its start. So the limit holds from the end of the first calls on,
//     and a new name gains nothing. The first four calls of a customer are all measured. Of the
//     later calls 1 in 8 is measured, and the others cost the mean of the last 16 measured ones.
//   - If calls cannot be measured, a cost is learned from the processor time of the process, by
//     comparison. This needs a key for each customer. Customers that are known by name have
//     precedence: at most half of the keys are for others, each of which needs 20 calls first. A call
//     of a customer without a key costs what a call costs without learning.
//   - Memory is bounded: MaxKeys keys, and 1024 customers whose calls were measured. A customer that
//     loses its key or its measurements starts again, and no other customer is affected.
//
// The cost that was learned for a customer's key has precedence over measurements, because it
// includes what a call leaves to other goroutines and to the garbage collector.
//
// # Comparison
//
// The idea: if the process used 0.3 s more in a second with ten more calls of a key, such a call
// takes 30 ms. With many keys at once, that is a line through points in many dimensions.
//
// The process knows the processor time y that it has used in each interval, and how many calls
// n_k of each key k ran in it. An [Estimator] fits the linear model
//
//	y = θ_0·seconds + Σ n_k·θ_k + noise
//
// by recursive least squares, in the form of a Kalman filter. θ_k ≥ 0 is the cost of a call. θ_0
// is the background: work that no call explains. P is the covariance of the errors of θ, so the
// standard error of a cost is √P_kk. For each interval, with x = (seconds, n):
//
//	P     *= exp(seconds/memory)                   old intervals count less
//	R      = φ·max(Σ n_k·θ_k², y²/Σn_k) + tick²    variance of the noise
//	S      = xᵀPx + R                              variance of e
//	e      = y − xᵀθ, limited to ±3√S              one odd interval moves the costs little (Huber)
//	θ     += Px·e/S
//	P     −= (Px)(Px)ᵀ/S
//	φ     += (φ/8)·(R/S)·(e²/S − 1)                variance of the cost of a call, in units of θ_k²
//	θ     −= P_k·θ_k/P_kk where θ_k < 0            the nearest θ without negative costs
//
// If two intervals in a row have e beyond the limit with the same sign, then costs have changed:
// all keys in the interval get the errors of new keys. The cost of a new key is 0 ± y/n_k, because
// the calls cannot take more than the whole processor time.
//
// If two keys are always called together, only their sum is known, so each keeps such a wide error.
// The error of θ_0 is at most 5 % of a processor. So a constant load is not mistaken for
// background, unless it is that small. All rejected calls have one key.
//
// A call counts where it runs: each interval counts the fraction of the call's time that lies in
// it. Therefore an interval is used only after four more have ended. Work that a call did before
// the oldest of these counts as background.
//
// # When a cost is used
//
// A cost is used once its standard error is at most MaxError of the cost, or of one Unit if that is
// more, and the key was in five intervals. The cost that is charged is at least the standard error,
// so no call is free. When the error grows again, the last cost stays in use, but within two
// standard errors of the present estimate.
//
// # Limits, and who could abuse them
//
// A customer whose calls always come together with calls of another makes both errors wide: new
// keys are then charged as without learning, and known ones as before. It cannot move its cost to
// the other, because each interval in which the ratio of the two differs counts against it. A known
// customer cannot make its cost unknown by calls that vary; it is charged at least half of what it
// uses (TestAlternation). A new customer whose calls vary by a factor of 100 every few seconds may
// stay unknown for minutes. If the same customers always call several keys at once, such as the
// routes of one page, the costs of these keys cannot be distinguished: use customers as keys. Keys
// beyond MaxKeys share one estimate. It explains what their calls use, and is not charged.
//
// # Constants
//
// A correct model exceeds 3√S in 0.3 % of all intervals. φ starts at 1, as for exponentially
// distributed costs, is an average of about 8 intervals, and is 0.01 to 1000. The memory is 300 s:
// a slow drift is followed within minutes, and sudden changes are found by the limit. The cost of a
// rejection starts as 0 ± 100 µs. The tick of 4 ms is the resolution of kernels that count
// processor time in ticks. Intervals longer than four times Config.Interval are ignored, because
// the process stood still or had no calls. R includes another 1e-11 of Σ x_k²·P_kk for rounding
// errors, which would make an error 0 if only the sum of two costs is known. This equals one tick
// if the root of that sum is 21 minutes of processor time, so it has no effect in most intervals.
// BenchmarkFigures halves and doubles each of these. Only the limit matters much: half of it takes
// noise for changes, and with twice of it a doubled cost is learned slowly.
//
// # Source
//
// Site Reliability Engineering, chapter 21, measures quotas in CPU seconds, and says that
// requests per second are a poor metric. Kalman (1960), "A New Approach to Linear Filtering and
// Prediction Problems"; Huber (1964), "Robust Estimation of a Location Parameter".
package cost
