"""Trained policies: their input, their networks, their folders.

    features     what follows from each choice, computed beside the observation
    network      the policy and value network in torch, for learning
    forward      the same network compiled, for playing
    rollout_net  the small network that search plays out with
    checkpoint   a policy as a folder of safetensors and JSON
    insight      what a trained policy does and believes
"""
