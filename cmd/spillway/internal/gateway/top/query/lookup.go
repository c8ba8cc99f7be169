package query

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed90641741/spillway/cmd/spillway/internal/adminclient"
)

// A Resolver looks names up, as [net.Resolver] does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// A Lookup finds all addresses of a name.
type Lookup struct {
	Name     string // for people
	scheme   string
	host     string
	port     string // of SRV records empty: they have ports
	resolver Resolver
}

// ParseLookup returns the lookup of [https://]NAME[:PORT]. A name that begins with an underscore has SRV records.
func ParseLookup(name string, r Resolver) (Lookup, error) {
	u, err := parse(name)
	if err != nil || u.Path != "" {
		return Lookup{}, fmt.Errorf("%q is no name, must be NAME[:PORT] or https://NAME[:PORT]", name)
	}
	l := Lookup{Name: Plain(name, maxName), scheme: u.Scheme, host: u.Hostname(), port: u.Port(), resolver: r}
	if strings.HasPrefix(l.host, "_") {
		if strings.HasSuffix(name, ":"+l.port) {
			return Lookup{}, fmt.Errorf("%q must have no port: SRV records have ports", name)
		}
		l.port = ""
	}
	return l, nil
}

// Find returns the targets of all addresses that the name has now.
func (l *Lookup) Find(ctx context.Context) ([]Target, error) {
	if l.port != "" {
		return l.addresses(ctx, l.host, l.port)
	}
	_, records, err := l.resolver.LookupSRV(ctx, "", "", l.host)
	if err != nil {
		return nil, err
	}
	return l.all(ctx, records[:min(MaxTargets, len(records))])
}

// addresses returns the targets of the addresses of a host.
func (l *Lookup) addresses(ctx context.Context, host, port string) (all []Target, err error) {
	found, err := l.resolver.LookupNetIP(ctx, "ip", host)
	for _, a := range found {
		to := net.JoinHostPort(a.Unmap().String(), port)
		t := Target{to, adminclient.Target{URL: l.scheme + "://" + to}}
		if l.scheme == "https" {
			t.at.ServerName = strings.TrimSuffix(host, ".")
		}
		all = append(all, t)
	}
	return all, err
}

// concurrentLookups bounds the lookups of the hosts in SRV records.
const concurrentLookups = 32

// all returns the targets of the hosts in SRV records. A host without an address is left out, unless all are.
func (l *Lookup) all(ctx context.Context, records []*net.SRV) (all []Target, err error) {
	var errs []error
	var mu sync.Mutex
	var wait sync.WaitGroup
	free := make(chan struct{}, concurrentLookups)
	for _, record := range records {
		free <- struct{}{}
		wait.Go(func() {
			defer func() { <-free }()
			found, err := l.addresses(ctx, record.Target, strconv.Itoa(int(record.Port)))
			mu.Lock()
			defer mu.Unlock()
			all = append(all, found...)
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	wait.Wait()
	if len(all) == 0 {
		return nil, errors.Join(errs[:min(1, len(errs))]...)
	}
	return all, nil
}

// MaxTargets is how many processes are asked at most.
const MaxTargets = 4096

// Unique returns the targets in order, each once, and at most [MaxTargets].
func Unique(all []Target) []Target {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Target) int { return strings.Compare(a.Address, b.Address) })
	all = slices.CompactFunc(all, func(a, b Target) bool { return a.at.URL == b.at.URL && a.at.Dial == b.at.Dial })
	return all[:min(MaxTargets, len(all))]
}
