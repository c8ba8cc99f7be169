//go:build thorough

package deploy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A scaledObject has the fields of keda.sh/v1alpha1 that keda.yaml uses, by the names and types of its published schema
// (KEDA 2.21). Its module needs 480 more packages.
type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"` //nolint:tagliatelle // as KEDA spells it
		PollingInterval *int32 `json:"pollingInterval"` //nolint:tagliatelle // as KEDA spells it
		MinReplicaCount *int32 `json:"minReplicaCount"` //nolint:tagliatelle // as KEDA spells it
		MaxReplicaCount *int32 `json:"maxReplicaCount"` //nolint:tagliatelle // as KEDA spells it
		Triggers        []struct {
			Type       string            `json:"type"`
			MetricType string            `json:"metricType"` //nolint:tagliatelle // as KEDA spells it
			Metadata   map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// DeepCopyObject implements [runtime.Object].
func (s *scaledObject) DeepCopyObject() runtime.Object { return new(*s) }

// addKEDA makes the kind known.
func addKEDA(kinds *runtime.Scheme) {
	kinds.AddKnownTypeWithName(schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}, &scaledObject{})
}
