// Package spillslog writes rejections and calls that were given up to a [log/slog.Logger]:
// one line says who was rejected, what it asked for, why, and what to do.
//
//	log, err := spillslog.New(spillslog.Config{})
//	server, err := ingress.New(ingress.Config{Observer: log})
//
// # Rate
//
// An overload must not become an overload of the log. For each policy, reason, class and mode
// at most one line is written per [Config.Interval]; its left_out is how many decisions of the
// same kind had no line before it. The others cost two atomic operations and no memory. One
// rejected CRITICAL request is not hidden by a thousand rejected SHEDDABLE ones.
//
// # Slow handlers
//
// Observe never waits for the handler. Lines go to a queue of 64, which one goroutine
// writes; it exists only while there are lines to write. Lines that find the queue full are
// left out and counted.
//
// # Shared quotas
//
// [Observer.Board] writes when the board of a shared quota stops answering, and when it answers again:
//
//	quota            the name that was given to Board
//	error            of the network, such as "connection refused", or the code of Redis, such as NOAUTH;
//	                 "other" for all else, which may contain a password
//	timeout          there was no answer in time: the server hangs, or packets are lost
//	answered_before  the server has answered this process before: its address and password are right
//	after            how long it did not answer
//	this_task        this process was elected leader
//
// # Fields
//
//	policy       the package that decided: shed, quota, throttle, retry
//	reason       why, as in the metrics: queue_full, quota, budget
//	route        the Key of the call: the route pattern on a server, the backend on a client
//	customer     on whose behalf, as [Config.Customer] returns it
//	criticality  the class of the call
//	attempt      the number of the attempt, if it is not the first
//	measured     what the policy measured, where it measures; unit says of what
//	limit        what is allowed of it
//	setting      the limit, where the reason has several: unlisted_total, capacity
//	retry_after  after how long the policy expects to admit again
//	             (of a quota rounded up to 1, 2, 4, 8 ms and so on, so that errors can be shared)
//	request_id   as [Config.RequestID] returns it
//	do           what an operator can do about it
//	left_out     decisions of this kind without a line
//
// Nothing that a backend answered is written, as its errors may contain addresses with
// passwords. Values are cut after 128 bytes, and do after 512.
package spillslog
