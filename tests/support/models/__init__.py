"""Models of what runs in a cluster: where pods land, and how many replicas there are.

`scheduler` models kube-scheduler's filters, scores and preemption, and Karpenter beside it; it was
held against what the real one was seen to do. `autoscaler` models KEDA and the autoscaler of
Kubernetes, by the arithmetic of their sources. `planned_nodes` gives the scheduler the nodes that a
plan's rendered pools make, and `placement` asks it which pools take a job. Each refuses what it
does not know; `test_scheduler` and `test_autoscaler` hold them to figures of upstream's pages.
"""
