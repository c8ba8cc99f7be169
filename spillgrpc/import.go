package spillgrpc

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// Imported are the retries of a service config, as near as Spillway has them. Make
// one with [ImportServiceConfig], and give it to one [Client] or several, which
// then share its budget.
type Imported struct {
	// NotCarriedOver says, for a human, in which ways Spillway retries differently
	// from what the service config says. Log it once.
	NotCarriedOver []string

	strategy *byMethod
	policies map[string]*retryPolicy // by "/service/method", "/service/" or ""
	none     *retryPolicy
}

// maxAttempts is how many attempts grpc makes at most, whatever a service config
// says.
const maxAttempts = 5

// ImportServiceConfig reads retryPolicy and retryThrottling of a service config in
// JSON, as gRFC A6 has them, or returns an error that names what is not valid.
//
// For each method with a retryPolicy it makes an [retry.AWSStandard] with as many
// attempts and the backoff; the codes of the policy are retried, others are not,
// and nor are methods without a policy. With retryThrottling all retries are paid
// for by a [budget.RetryThrottling]; without, by a bucket of 500 tokens, where
// grpc would know no bound. What else the service config says goes on to be in
// force on the channel that has it. Changes of it by a resolver are not followed.
func ImportServiceConfig(text string) (*Imported, error) {
	var c serviceConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return nil, fmt.Errorf("spillgrpc: service config: %w", err)
	}
	m := &Imported{policies: make(map[string]*retryPolicy)}
	b, throttling, err := m.budget(c.RetryThrottling)
	if err != nil {
		return nil, fmt.Errorf("spillgrpc: service config: retryThrottling: %w", err)
	}
	if m.none, err = newRetryPolicy(jsonRetryPolicy{MaxAttempts: 1}, b); err != nil {
		return nil, fmt.Errorf("spillgrpc: service config: %w", err)
	}
	for i, method := range c.MethodConfig {
		if err := m.add(method, b); err != nil {
			return nil, fmt.Errorf("spillgrpc: service config: methodConfig[%d]: %w", i, err)
		}
	}
	m.strategy = newByMethod(m, throttling)
	return m, nil
}

// Strategy returns the retries as a strategy, for code that puts another one around it, such as the limits of an xDS cluster:
//
//	spillgrpc.ClientConfig{Imported: m, Egress: cluster.Egress(egress.Config{Retry: m.Strategy()})}
func (m *Imported) Strategy() retry.Strategy { return m.strategy }

// inside reports whether the tokens of a strategy are those of m.
func (m *Imported) inside(around retry.Strategy) bool {
	t := around.Begin(spillway.Call{})
	if m.strategy.Release(t, fault.Failure{Unsent: true}) == nil {
		return true
	}
	_ = around.Release(t, fault.Failure{Unsent: true}) // nothing was done with it
	return false
}

func (m *Imported) missingf(format string, args ...any) {
	m.NotCarriedOver = append(m.NotCarriedOver, fmt.Sprintf(format, args...))
}

func (m *Imported) budget(c *jsonThrottling) (b retry.Budget, throttling *budget.RetryThrottling, err error) {
	if c == nil {
		m.missingf("retryThrottling: there is none, and grpc would retry without bound: a bucket of 500 tokens bounds retries")
		b, err = budget.New(budget.Config{})
		return b, nil, err
	}
	throttling, err = budget.NewRetryThrottling(c.MaxTokens, c.TokenRatio)
	return throttling, throttling, err
}

func (m *Imported) add(c jsonMethod, b retry.Budget) error {
	var names []string
	for _, n := range c.Name {
		path, err := n.path()
		if err != nil {
			return err
		}
		if _, ok := m.policies[path]; ok {
			return fmt.Errorf("name %q was there before", path)
		}
		m.policies[path] = m.none
		names = append(names, path)
	}
	where := strings.Join(names, ", ")
	if len(names) == 1 && where == "" {
		where = "all methods"
	}
	if c.HedgingPolicy != nil {
		m.missingf("%s: hedgingPolicy: Spillway does not hedge", where)
	}
	if c.RetryPolicy == nil {
		return nil
	}
	if err := c.RetryPolicy.check(); err != nil {
		return fmt.Errorf("retryPolicy: %w", err)
	}
	p, err := newRetryPolicy(*c.RetryPolicy, b)
	if err != nil {
		return fmt.Errorf("retryPolicy: %w", err)
	}
	m.report(where, *c.RetryPolicy)
	for _, path := range names {
		m.policies[path] = p
	}
	return nil
}

// report says what of a retry policy is not carried over.
func (m *Imported) report(where string, c jsonRetryPolicy) {
	if c.MaxAttempts > maxAttempts {
		m.missingf("%s: maxAttempts: %d is taken as %d, as grpc does", where, c.MaxAttempts, maxAttempts)
	}
	if c.BackoffMultiplier != 2 {
		m.missingf("%s: backoffMultiplier: %v is taken as 2", where, c.BackoffMultiplier)
	}
	if c.PerAttemptRecvTimeout != nil {
		m.missingf("%s: perAttemptRecvTimeout: attempts are bounded by the deadline of the call alone", where)
	}
	m.missingf("%s: the wait before a retry is uniform between nothing and the backoff (grpc: within 20 %% of the backoff)", where)
}

// policy returns that of a method: its own, that of its service, or that for all.
func (m *Imported) policy(method string) *retryPolicy {
	if p, ok := m.policies[method]; ok {
		return p
	}
	if p, ok := m.policies[method[:strings.LastIndexByte(method, '/')+1]]; ok {
		return p
	}
	if p, ok := m.policies[""]; ok {
		return p
	}
	return m.none
}

// A retryPolicy is what a service config says of retries of a method.
type retryPolicy struct {
	strategy  *retry.AWSStandard
	retryable map[codes.Code]bool
}

// safe returns whether an attempt that failed with a code may be sent again.
func (p *retryPolicy) safe(c codes.Code) fault.Safety {
	if p.retryable[c] {
		return fault.RetrySafe
	}
	return fault.RetryUnsafe
}

func newRetryPolicy(c jsonRetryPolicy, b retry.Budget) (*retryPolicy, error) {
	p := &retryPolicy{retryable: make(map[codes.Code]bool)}
	for _, code := range c.RetryableStatusCodes {
		p.retryable[code] = true
	}
	sc := retry.AWSStandardConfig{
		Revision: "2.0", MaxAttempts: min(c.MaxAttempts, maxAttempts),
		Base: time.Duration(c.InitialBackoff), OverloadBase: time.Duration(c.InitialBackoff), MaxBackoff: time.Duration(c.MaxBackoff),
		Budget: b,
	}
	if _, ok := b.(*budget.RetryThrottling); ok { // which counts events
		sc.Prices = retry.Prices{Retry: 1, Overload: 1, Timeout: 1, Success: 1}
	}
	var err error
	p.strategy, err = retry.NewAWSStandard(sc)
	return p, err
}
