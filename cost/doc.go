// Package cost learns how much processor time the calls of each customer or route
// take, so that quotas can count processor time in place of requests. A customer with few
// expensive calls then gets no more than its share.
//
// # Who pays for what
//
//   - No customer is charged for the calls of another. A cost is learned for a customer, from its own calls,
//     or for a route where the user says that all customers of the route are to share it.
//   - Where a call can be measured, its customer is charged what the call has used when it ends, however its
//     cost is estimated at its begin. So a customer is held to its limit from the end of its first calls on, and
//     a new name gains nothing: its first four calls are measured, each. Of the calls after
//     that, 1 in 8 is measured, and the others cost the mean of the last 16.
//   - Where calls cannot be measured, a cost is learned from the processor time of the process, by comparison. That needs a
//     place for each customer. Customers that are known by name come first; at most half of the places are for others, each of
//     which needs 20 calls first. A call of a customer without a place costs what a call costs without learning.
//   - Memory is bounded: MaxKeys places, and 1024 customers whose calls were measured. A customer that loses its place
//     or its measurements starts again, and no other one notices.
//
// The last cost that was known of a place is used before measurements, as it has in it what a call leaves to other
// goroutines and to the garbage collector.
//
// # Comparison
//
// The idea takes one line: if the process used 0.3 s more in a second with ten more calls of a key, such a call takes
// 30 ms. With many keys at once, that is a line through points in many dimensions.
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
// If two intervals in a row have e beyond the limit, with the same sign, then costs have changed:
// all keys in the interval get the errors of new keys. The cost of a new key is
// 0 ± y/n_k, since the calls cannot take more than all of the processor time.
//
// Two keys that are always called together keep such a wide error, as only their sum is
// known. The error of θ_0 is at most 5 % of a processor. So a constant load is not mistaken for
// background, unless it is that small. Rejected calls are a key of their own.
//
// A call counts where it runs: each interval counts the part of the call that lies in it, by
// time. Therefore an interval is used only after four more have ended. Work that a call has
// done earlier than that counts as background.
//
// # When a cost is used
//
// A cost is used once its standard error is at most MaxError of the cost, or of one Unit if
// that is more, and the key was in five intervals. The cost that is charged is at
// least the standard error, so that no call is free. When the error becomes wide again, the
// last cost stays in use, moved into two standard errors around the present estimate.
//
// # Limits, and who could abuse them
//
// A customer whose calls always come together with calls of another makes both errors wide: new
// keys are then charged as without learning, and known ones as before. It cannot move its
// cost to the other, since each interval in which the ratio of the two differs
// counts against it. A known customer cannot make its cost unknown by calls that vary; it is charged
// at least half of what it uses (TestAlternation). A new customer whose calls vary by a factor of 100 every
// few seconds may stay unknown for minutes. Keys that are always called by the same
// customers at once, such as the routes of one page, are not distinguished: use customers as keys.
// Keys beyond MaxKeys share one estimate. It explains what their calls use, and is not charged.
//
// # Constants
//
// A correct model exceeds 3√S in 0.3 % of all intervals. φ starts at 1, as for exponentially
// distributed costs, is an average of about 8 intervals, and is 0.01 to 1000. The memory is 300 s: a
// slow drift is followed within minutes, and changes are found by the limit. A rejection
// takes 0 ± 100 µs at first. The tick of 4 ms is the resolution of kernels that
// count processor time in ticks. Intervals longer than four times Config.Interval are ignored, as the
// process stood still or had no calls. R has another 1e-11 of Σ x_k²·P_kk for rounding errors, which
// would make an error 0 where only the sum of two costs is known. It equals one tick if the root
// of that sum is 21 minutes of processor time, so it is nothing in most intervals. TestConstants halves and
// doubles each of these. Only the limit matters much: half of it takes noise for changes, and with
// double of it a doubled cost is learned slowly.
//
// # Source
//
// Site Reliability Engineering, chapter 21, measures quotas in CPU seconds, and says that
// requests per second are a poor metric. Kalman (1960), "A New Approach to Linear Filtering and
// Prediction Problems"; Huber (1964), "Robust Estimation of a Location Parameter".
package cost
