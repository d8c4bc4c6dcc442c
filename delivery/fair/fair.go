// Package fair shares common resources between tenants, so that no tenant delays the others. Queue is an order: weighted fair queueing by
// tenant. Places are a semaphore that admits waiters in that order, WorkQueue is a controller's work queue in that order.
// docs/architecture.md lists the shared resources with their bounds.
//
// Alternatives: the queueset of the API server (k8s.io/apiserver/pkg/util/flowcontrol) assigns its flows to a fixed number of queues by
// shuffle sharding, so two tenants may share one, and each request waits on a goroutine of its own; here thousands of objects wait, once
// each and without a goroutine. For the work queues see WorkQueue.
package fair
