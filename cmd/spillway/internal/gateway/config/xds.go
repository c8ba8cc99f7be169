package config

// XDS is a control plane, and who the proxy is to it.
type XDS struct {
	Address string     `yaml:"address" jsonschema:"required" jsonschema_description:"Host and port of the control plane, which speaks ADS, and LRS for load reports."`
	Node    Node       `yaml:"node" jsonschema:"required" jsonschema_description:"Who the proxy is to the control plane."`
	TLS     *ClientTLS `yaml:"tls" jsonschema_description:"Without it the connection is in the clear."`
}

// Node is who a proxy is to a control plane.
type Node struct {
	ID      string `yaml:"id" jsonschema:"required" jsonschema_description:"The name of this proxy."`
	Cluster string `yaml:"cluster" jsonschema_description:"The name of the group that it is one of."`
}

// ClusterXDS is by which name a control plane knows a cluster.
type ClusterXDS struct {
	Cluster string `yaml:"cluster" jsonschema_description:"The name of the resource; the default is that of this cluster. Clusters with the same one share its limits."`
	Service string `yaml:"service" jsonschema_description:"The EDS service for which the limits are meant: they follow the resource only while it names this one. The default is any."`
}

func (k *checker) xds(x *XDS) {
	k.address("xds.address", x.Address, false)
	if x.Node.ID == "" {
		k.failf("xds.node.id", "is missing, must be the name by which the control plane knows this proxy")
	}
}

// controlled checks that only the control plane sets the limits of a cluster with xds.
func (k *checker) controlled(at string, x *Cluster) {
	switch {
	case x.XDS == nil:
	case k.config.XDS == nil:
		k.failf(at+".xds", "is given, but no control plane is: xds is missing")
	case x.Inflight.MaxInFlight != 0:
		k.failf(at+".inflight.max_in_flight", "is %d, must be left out where the control plane sets it", x.Inflight.MaxInFlight)
	case x.Tune != nil && x.Tune.Limit == TuneInFlight:
		k.failf(at+".tune.limit", "is %s, must be %s where the control plane sets max_requests", TuneInFlight, TuneRate)
	}
}
