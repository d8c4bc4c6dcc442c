// Package cycle finds what depends on itself, directly or over others.
package cycle

import "slices"

// Graph finds the nodes on cycles, as strongly connected components (Tarjan, 1972). It visits each node and each edge once, for any number
// of queried nodes.
type Graph[K comparable] struct {
	edges func(K) []K
	// order is that of the visit, from 1; low the earliest node that can be reached; component that of a node, once it is complete; size how
	// many nodes a component has.
	order, low, component map[K]int
	size                  map[int]int
	stack                 []K
}

// New returns the graph of the nodes that edges leads to: it returns those that a node depends on.
func New[K comparable](edges func(K) []K) *Graph[K] {
	return &Graph[K]{edges: edges, order: map[K]int{}, low: map[K]int{}, component: map[K]int{}, size: map[int]int{}}
}

// Has reports whether a node lies on a cycle.
func (g *Graph[K]) Has(node K) bool {
	g.visit(node)
	return g.size[g.component[node]] > 1 || slices.Contains(g.edges(node), node)
}

func (g *Graph[K]) visit(node K) {
	if g.order[node] != 0 {
		return
	}
	g.order[node] = len(g.order) + 1
	g.low[node] = g.order[node]
	g.stack = append(g.stack, node)
	for _, next := range g.edges(node) {
		g.visit(next)
		if g.component[next] == 0 {
			g.low[node] = min(g.low[node], g.low[next])
		}
	}
	if g.low[node] != g.order[node] {
		return
	}
	from := slices.Index(g.stack, node)
	for _, member := range g.stack[from:] {
		g.component[member] = g.order[node]
		g.size[g.order[node]]++
	}
	g.stack = g.stack[:from]
}

// Shortest returns a shortest way from a node that lies on a cycle back to itself, both ends named. It costs a walk over the node's
// component.
func (g *Graph[K]) Shortest(node K) []K {
	cameFrom := map[K]K{}
	for queue := []K{node}; len(queue) > 0; queue = queue[1:] {
		for _, next := range g.edges(queue[0]) {
			if next == node {
				return wayTo(queue[0], node, cameFrom)
			}
			if _, seen := cameFrom[next]; !seen && g.component[next] == g.component[node] {
				cameFrom[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func wayTo[K comparable](last, node K, cameFrom map[K]K) []K {
	way := []K{node}
	for at := last; at != node; at = cameFrom[at] {
		way = append(way, at)
	}
	way = append(way, node)
	slices.Reverse(way)
	return way
}
