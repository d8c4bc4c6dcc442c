package step

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// labelsOf returns the labels of a metric about an object.
func labelsOf(obj Object) prometheus.Labels {
	return prometheus.Labels{"kind": kindOf(obj), "namespace": obj.GetNamespace(), "name": obj.GetName()}
}

// kindOf returns the kind of an object, which typed clients leave out of it.
func kindOf(obj Object) string {
	name := fmt.Sprintf("%T", obj)
	return name[strings.LastIndex(name, ".")+1:]
}
