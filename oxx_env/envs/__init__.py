"""The environments: PettingZoo parallel and AEC, Gymnasium, and a batch for stable-baselines3.

    parallel.BaronOxxParallel   PettingZoo ParallelEnv      `baron_oxx_v0.parallel_env`
    aec.BaronOxxAEC             PettingZoo AECEnv           `baron_oxx_v0.env`
    single.BaronOxxSingle       Gymnasium, against bots     `gymnasium.make("oxx_env/BaronOxx-v0")`
    vector.BaronOxxVecEnv       SB3 VecEnv on the batch kernel

Nothing is imported here: `vector` needs stable-baselines3, the others do not.
"""
