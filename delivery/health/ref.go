package health

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ref names an object to look at.
type Ref struct {
	Kind schema.GroupVersionKind
	Key  client.ObjectKey
	// Floor is a resourceVersion that the watch must have seen, so that an object is not judged by its state before the last write. Empty:
	// any version will do.
	Floor string
	// unsure is a Service of unknown type: it is judged only if the watch shows a load balancer.
	unsure bool
}

func (r Ref) String() string { return r.Kind.Kind + "/" + r.Key.Name }

// plain is the object alone.
func (r Ref) plain() Ref { return Ref{Kind: r.Kind, Key: r.Key} }
