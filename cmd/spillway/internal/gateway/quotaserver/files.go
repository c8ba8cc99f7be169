package quotaserver

import (
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotas"
)

// Files returns an error for each certificate, key, CA, password or token file of a configuration that
// cannot be used.
func Files(c *config.QuotaServer) (errs []error) {
	if _, err := keys.Server(c.TLS); err != nil {
		errs = append(errs, err)
	}
	if c.Redis != nil {
		e, err := quotas.Open(c.Engine())
		if err == nil {
			err = e.Close()
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return append(errs, keys.Admin(&c.Admin)...)
}
