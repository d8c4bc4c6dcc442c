package budget

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Field is a field of spec.limits of a Tenant.
type Field struct {
	// Name of the field in YAML.
	Name string
	// bytes: the field is a size, written as a quantity.
	bytes bool
	// least and most are the smallest and the largest value that the API server allows.
	least, most int64
	// set returns the value that is set. in returns the field of Limits.
	set func(*v1alpha1.TenantLimits) (int64, bool)
	in  func(*Limits) *int64
}

// The fields.
var (
	Projects = Field{"projects", false, 0, 10_000,
		func(l *v1alpha1.TenantLimits) (int64, bool) { return number(l.Projects) }, func(l *Limits) *int64 { return &l.Projects }}
	Apps = Field{"apps", false, 0, 100_000,
		func(l *v1alpha1.TenantLimits) (int64, bool) { return number(l.Apps) }, func(l *Limits) *int64 { return &l.Apps }}
	TreeBytes = Field{"treeBytes", true, 64 << 10, 1 << 30,
		func(l *v1alpha1.TenantLimits) (int64, bool) { return size(l.TreeBytes) }, func(l *Limits) *int64 { return &l.TreeBytes }}
	AppObjects = Field{"appObjects", false, 1, 5000,
		func(l *v1alpha1.TenantLimits) (int64, bool) { return number(l.AppObjects) }, func(l *Limits) *int64 { return &l.App.Objects }}
	AppBytes = Field{"appBytes", true, 64 << 10, 16 << 20,
		func(l *v1alpha1.TenantLimits) (int64, bool) { return size(l.AppBytes) }, func(l *Limits) *int64 { return &l.App.Bytes }}
	AppValues = Field{"appValues", false, 1000, 5_000_000,
		func(l *v1alpha1.TenantLimits) (int64, bool) { return number(l.AppValues) }, func(l *Limits) *int64 { return &l.App.Values }}
	SourceBytes = Field{"sourceBytes", true, 1 << 20, 3 << 30,
		func(l *v1alpha1.TenantLimits) (int64, bool) { return size(l.SourceBytes) }, func(l *Limits) *int64 { return &l.SourceBytes }}
	PackBytes = Field{"packBytes", true, 16 << 20, 4 << 30,
		func(l *v1alpha1.TenantLimits) (int64, bool) { return size(l.PackBytes) }, func(l *Limits) *int64 { return &l.PackBytes }}
	RenderedBytes = Field{"renderedBytes", true, 64 << 10, 64 << 30,
		func(l *v1alpha1.TenantLimits) (int64, bool) { return size(l.RenderedBytes) }, func(l *Limits) *int64 { return &l.RenderedBytes }}
	StoreBytes = Field{"storeBytes", true, 1 << 20, 64 << 30,
		func(l *v1alpha1.TenantLimits) (int64, bool) { return size(l.StoreBytes) }, func(l *Limits) *int64 { return &l.StoreBytes }}
)

var fields = []Field{Projects, Apps, TreeBytes, AppObjects, AppBytes, AppValues, SourceBytes, PackBytes, RenderedBytes, StoreBytes}

// FieldOf returns the field with a name, if there is one.
func FieldOf(name string) (Field, bool) {
	for _, f := range fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

func number(n *int32) (int64, bool) {
	if n == nil {
		return 0, false
	}
	return int64(*n), true
}

func size(q *resource.Quantity) (int64, bool) {
	if q == nil {
		return 0, false
	}
	return q.Value(), true
}

// Text formats a number, or a size, which is written as a quantity if it is a round one.
func (f Field) Text(n int64) string {
	switch {
	case !f.bytes:
		return fmt.Sprint(n)
	case n%1024 != 0:
		return fmt.Sprintf("%d bytes", n)
	}
	return resource.NewQuantity(n, resource.BinarySI).String()
}
