// Package fair shares what tenants use in common, so that none keeps the others waiting. Queue is an order: weighted fair queueing by
// tenant. Places are a semaphore whose waiters are let in by it, WorkQueue is the work queue of a controller in it. docs/architecture.md
// lists the resources that are shared so, with the bound of each.
//
// Others were looked at. The queueset of the API server (k8s.io/apiserver/pkg/util/flowcontrol) deals its flows to a fixed number of
// queues by shuffle sharding, so that two tenants may share one, and has each request wait on a goroutine of its own; what waits here is
// thousands of objects, held once each, that have no goroutine. For the work queues see WorkQueue.
package fair
