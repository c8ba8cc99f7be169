package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotas"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotaserver"
)

// quotaCheck has the arguments of "spillway quota check".
type quotaCheck struct {
	output
	configFile
	Live bool `help:"Also try to listen on the address for operators and to use the servers of Redis, from this machine."`
}

func (quotaCheck) Help() string {
	return "Lists all errors of the file, and warns of probable mistakes. Exit status: 0 without errors, 1 if servers of Redis cannot " +
		"be used, 2 if the file is wrong, 3 if a file that it names cannot be used or an address cannot be listened on."
}

func (c *quotaCheck) Run(ctx context.Context, w streams) error {
	if err := c.named(); err != nil {
		return err
	}
	return reportSteps(&c.output, w, c.steps(ctx))
}

func (c *quotaCheck) steps(ctx context.Context) (all []step) {
	r := readingOf(c.File)
	wanted, err := parsed(&r, config.ParseQuotaServer)
	if err != nil {
		return []step{schemaStep(err, "spillway quota schema describes the file; docs/scale.md has examples")}
	}
	all = append(all, step{Name: "schema", OK: true, Detail: fmt.Sprintf("%s is good: %d customers by name", c.File, len(wanted.Customers))})
	all = append(all, warningSteps(&r, wanted.Warnings())...)
	all = append(all, filesStep(quotaserver.Files(wanted), wanted.Files()))
	if !c.Live {
		return all
	}
	if a := wanted.Admin.Address; a != "" && a != "off" && !strings.HasPrefix(a, "unix:") {
		all = append(all, addressesStep(gateway.BindAddress(ctx, "admin", "address", a)))
	}
	if wanted.Redis != nil {
		all = append(all, newStep("quotas", exitBroken, one(quotas.TryEngine(ctx, wanted.Engine())), "the servers of Redis can be used",
			"the service starts without them, and grants each task the limit divided by tasks"))
	}
	return all
}

// one returns a list of an error; nil is none.
func one(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// quotaExplain has the arguments of "spillway quota explain".
type quotaExplain struct {
	output
	configFile
	Customer string `placeholder:"NAME" help:"Name of the customer; omit it for requests without one."`
}

func (quotaExplain) Help() string {
	return "The code that serves Envoys decides, without Envoys and servers of Redis. It opens no port and sends nothing.\n\n" +
		"  spillway quota explain quota.yaml --customer mail"
}

func (c *quotaExplain) Run(w streams) error {
	if err := c.named(); err != nil {
		return err
	}
	wanted, err := config.OpenQuotaServer(c.File)
	if err != nil {
		return usage{err}
	}
	e, err := quotaserver.Explain(wanted, c.Customer)
	if err != nil {
		return usage{err}
	}
	return c.tell(w, e.Write, e, nil)
}
